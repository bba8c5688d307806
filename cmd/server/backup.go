package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"loadline/internal/artifact"
	"loadline/internal/manifest"
	"loadline/internal/store"
)

// partOf ends the name of a backup that is being made.
const partOf = ".part"

// newBackup makes the command that copies the data folder of a manifest.
func newBackup(stdout, stderr io.Writer) *cobra.Command {
	var files []string
	var over manifest.Flags
	to := ""
	c := &cobra.Command{
		Use: "backup --to FOLDER", Short: "Copy the data folder, also while a server uses it",
		Args: func(_ *cobra.Command, args []string) error {
			if to == "" || len(args) > 0 {
				return errors.New("backup goes as: backup [--manifest FILE]… [--data DIR] --to FOLDER")
			}
			return nil
		},
		Example: "  server backup --manifest loadline.toml --to /backups/loadline-monday",
		RunE: func(*cobra.Command, []string) error {
			m, err := over.Load(files...)
			if err != nil {
				return err
			}
			return backUpTo(m, to, stdout, stderr)
		},
	}
	manifestFlags(c, &files, &over)
	c.Flags().StringVar(&to, "to", "", "the new `FOLDER`; it must not exist")
	return c
}

func backUpTo(m *manifest.Manifest, to string, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := backUp(ctx, m.Store.Dir, filepath.Clean(to), newProgress(stderr)); err != nil {
		return fmt.Errorf("backup to %s: %w", to, err)
	}
	_, err := fmt.Fprintf(stdout, "backed up %s to %s\n", m.Store.Dir, to)
	return err
}

// backUp makes the new folder to, which is whole from the moment that it has its name.
// Until then it is called to with ".part" behind it; what a killed backup left there is
// removed by the next one.
func backUp(ctx context.Context, from, to string, say progress) (err error) {
	if err := checkTarget(from, to); err != nil {
		return err
	}
	part, err := takePart(to + partOf)
	if err != nil {
		return err
	}
	defer part.Close()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part.Name()))
		}
	}()
	if err := copyData(ctx, from, part.Name(), say); err != nil {
		return err
	}
	if err := part.Sync(); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

func checkTarget(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return errors.New("it exists, and is not overwritten; choose another name")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	if inside, err := filepath.Rel(from, to); err == nil && filepath.IsLocal(inside) {
		return errors.New("it is in the data folder; choose one elsewhere, on another disk at best")
	}
	return nil
}

// takePart makes the folder that a backup is made in, empty, for this process until
// the file it returns is closed.
func takePart(name string) (*os.File, error) {
	if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	part, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(part.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		part.Close()
		return nil, fmt.Errorf("another backup is being made in %s: %w", name, err)
	}
	left, err := part.Readdirnames(-1)
	for _, file := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(name, file)))
	}
	if err != nil {
		part.Close()
		return nil, fmt.Errorf("remove what an earlier backup left in %s: %w", name, err)
	}
	return part, nil
}

func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// copyData copies the database before the outputs that its results name: each of them
// was there before its result was.
func copyData(ctx context.Context, from, part string, say progress) error {
	defer say("")
	err := store.Backup(ctx, from, part, func(written, total int64) {
		say("database: %d of %d MiB", written>>20, total>>20)
	})
	if err != nil {
		return err
	}
	return artifact.Copy(ctx, filepath.Join(from, outputsName), filepath.Join(part, outputsName), func(copied int64) {
		say("kept outputs: %d MiB", copied>>20)
	})
}
