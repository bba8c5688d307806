package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Lengths of the model's answers.
const (
	shortTokens = 20
	longTokens  = 4000
	tokenBytes  = 5 // see bench/fakemodel
)

// lab is where measurements are made: the programs, the model, a folder that
// goes away with it.
type lab struct {
	folder string
	client *http.Client
	model  *process
	next   int // number of the next folder of a process
}

// newLab builds the programs and starts the model.
func newLab(ctx context.Context) (*lab, error) {
	folder, err := os.MkdirTemp("", "loadline-bench-")
	if err != nil {
		return nil, err
	}
	l := &lab{folder: folder, client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 256, DisableCompression: true,
	}}}
	for _, path := range []string{"./bench/fakemodel", "./bench/floor", "./cmd/server"} {
		build := exec.CommandContext(ctx, "go", "build", "-o", l.program(path), path)
		if text, err := build.CombinedOutput(); err != nil {
			return nil, errors.Join(fmt.Errorf("build %s: %w: %s", path, err, text), l.close())
		}
	}
	l.model, err = start(ctx, folder, l.program("fakemodel"), "-tokens", fmt.Sprintf("%d,%d", shortTokens, longTokens))
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *lab) program(path string) string { return filepath.Join(l.folder, filepath.Base(path)) }

// close stops the model and removes the folder.
func (l *lab) close() error {
	var err error
	if l.model != nil {
		err = l.model.stop()
	}
	return errors.Join(err, os.RemoveAll(l.folder))
}

// newFolder makes an empty folder for a process.
func (l *lab) newFolder() (string, error) {
	l.next++
	folder := filepath.Join(l.folder, strconv.Itoa(l.next))
	return folder, os.Mkdir(folder, 0o700)
}

// floor starts a floor. The store is none or turn.
func (l *lab) floor(ctx context.Context, store string, tokens int) (*target, error) {
	folder, err := l.newFolder()
	if err != nil {
		return nil, err
	}
	p, err := start(ctx, folder, l.program("floor"),
		"-model-url", l.model.url+"/v1", "-model", modelName(tokens), "-store", store, "-db", filepath.Join(folder, "floor.db"))
	if err != nil {
		return nil, err
	}
	return &target{process: p, name: "floor " + store, client: l.client}, nil
}

// server starts the server under test on a data folder, which it makes when the
// path is empty, and waits until it is ready.
func (l *lab) server(ctx context.Context, dataFolder string, tokens int) (*target, error) {
	return l.serverWith(ctx, dataFolder, tokens, "")
}

// serverWith is server with more tables in its manifest.
func (l *lab) serverWith(ctx context.Context, dataFolder string, tokens int, tables string) (*target, error) {
	folder, err := l.newFolder()
	if err != nil {
		return nil, err
	}
	if dataFolder == "" {
		dataFolder = filepath.Join(folder, "data")
	}
	manifest := filepath.Join(folder, "loadline.toml")
	text := fmt.Sprintf("[model]\nprovider = \"openai\"\nname = %q\nbase_url = %q\n", modelName(tokens), l.model.url+"/v1")
	if err := os.WriteFile(manifest, []byte(text+tables), 0o600); err != nil {
		return nil, err
	}
	p, err := start(ctx, folder, l.program("server"), "--manifest", manifest, "--listen", "127.0.0.1:0", "--data", dataFolder)
	if err != nil {
		return nil, err
	}
	t := &target{process: p, name: "server", client: l.client, sessions: true, dataFolder: dataFolder}
	if t.readyAfter, err = p.ready(ctx, l.client); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return t, nil
}

func modelName(tokens int) string { return fmt.Sprintf("fake-%d", tokens) }

// pair starts a floor and a server that ask the same model. The caller stops
// them with end.
func (l *lab) pair(ctx context.Context, store string, tokens int) (floor, server *target, err error) {
	if floor, err = l.floor(ctx, store, tokens); err != nil {
		return nil, nil, err
	}
	if server, err = l.server(ctx, "", tokens); err != nil {
		return nil, nil, errors.Join(err, floor.stop())
	}
	return floor, server, nil
}

// end stops targets. What was measured stands, so an unclean end is only said.
func end(targets ...*target) {
	for _, t := range targets {
		if err := t.stop(); err != nil {
			log.Printf("%s: %v", t.name, err)
		}
	}
}
