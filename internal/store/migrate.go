package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// errNewer refuses a database whose tables this program does not know.
var errNewer = errors.New("made by a newer version of this server; run that version")

// migrateUp brings the tables to the newest form that this program knows.
func migrateUp(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	migrations, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	current, newest, err := migrations.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > newest {
		return fmt.Errorf("tables of version %d, this server knows %d: %w", current, newest, errNewer)
	}
	if current == newest {
		return nil
	}
	_, err = migrations.Up(ctx)
	return err
}
