package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// block is a fenced part of a page: its language and its lines.
var block = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// walk PAGE does what a page of the documentation tells its reader to do, and wants
// to see what the page shows: blocks of console are commands and what they print,
// blocks of log are lines of the server's log, and a block of toml is the file that
// its first line names. An ellipsis stands for anything. Blocks of promql are written
// to rules.yml.
func walk(ts *testscript.TestScript, _ bool, args []string) {
	page, err := os.ReadFile(args[0])
	ts.Check(err)
	log := ""
	for _, found := range block.FindAllStringSubmatch(string(page), -1) {
		switch text := found[2]; found[1] {
		case "toml":
			name, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
			ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
		case "console":
			for _, step := range strings.Split("\n"+text, "\n$ ")[1:] {
				command, shown, _ := strings.Cut(strings.ReplaceAll(step, "\n> ", " "), "\n") // a line may go on
				follow(ts, command, shown)
			}
		case "log":
			log += "(?s).*" + wildcard(strings.ReplaceAll(strings.TrimSpace(text), "\n", "…"))
			await(ts, false, []string{log})
		case "promql":
			ts.Check(os.WriteFile(ts.MkAbs("rules.yml"), []byte(rulesFile(text)), 0o600))
		}
	}
}

// follow runs a command of a page in a shell whose variables and folder last, and
// wants what is shown. A server is started.
func follow(ts *testscript.TestScript, command, shown string) {
	if _, arguments, ok := strings.Cut(command, "bin/server"); ok {
		start(ts, false, strings.Fields(arguments))
		ts.Check(os.Remove(ts.MkAbs("greeting"))) // the folder has what the page has put there
		return
	}
	command = strings.ReplaceAll(command, "http://127.0.0.1:8080", ts.Getenv("URL"))
	ts.Check(ts.Exec("sh", "-c", command+"\nset | grep -E '^[A-Z]=' >$WORK/.variables\npwd >$WORK/.folder"))
	got := ts.ReadFile("stdout")
	ts.Check(ts.Chdir(strings.TrimSpace(ts.ReadFile(ts.Getenv("WORK") + "/.folder"))))
	variables := strings.Split(strings.TrimSpace(ts.ReadFile(ts.Getenv("WORK")+"/.variables")), "\n")
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		ts.Setenv(name, strings.Trim(value, "'"))
	}
	if !regexp.MustCompile("(?s)^" + wildcard(strings.TrimSpace(shown))).MatchString(got) {
		ts.Fatalf("$ %s\n%s\nThe page shows\n%s", command, got, shown)
	}
}

func wildcard(shown string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(shown), "…", ".*")
}

func rulesFile(expressions string) string {
	var b strings.Builder
	b.WriteString("groups:\n- name: page\n  rules:\n")
	for i, line := range strings.Split(strings.TrimSpace(expressions), "\n") {
		fmt.Fprintf(&b, "  - alert: Line%d\n    expr: %q\n", i+1, line)
	}
	return b.String()
}
