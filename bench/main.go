// Command bench measures the server and writes a table of figures and targets.
//
// What is compared with a floor is measured on both in turn, in one run on one
// machine, and counts as a ratio: see package main in bench/floor. The model is
// bench/fakemodel. Each of them is a process of its own; the client is this one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"regexp"
	"time"
)

// timeout bounds a whole run.
const timeout = 10 * time.Minute

// figures are measured in this order, on an idle machine.
func figures() []figure {
	return []figure{
		{"first text", measureFirstText},
		{"throughput", measureThroughput},
		{"streaming", measureStreaming},
		{"cpu", measureCPU},
		{"forms", measureForms},
		{"memory", measureMemory},
		{"start", measureStart},
		{"long history", measureLongHistory},
		{"tool cut", measureToolCut},
		{"extract", measureExtract},
		{"backlog", measureBacklog},
		{"search", measureSearch},
	}
}

// figure is one measurement, which fills one row of the table or more.
type figure struct {
	name    string
	measure func(context.Context, *lab) ([]row, error)
}

func main() {
	out := flag.String("out", "", "Markdown file whose table is replaced; without it the table is only printed")
	only := flag.String("only", "", "measure only the figures whose name matches this regular expression, and write no file")
	strict := flag.Bool("strict", false, "exit with 1 when a target is missed")
	flag.Parse()
	rows, err := run(*only)
	if err == nil && *out != "" && *only == "" {
		err = writeReport(*out, rows, time.Now())
	}
	if err != nil {
		log.Fatal(err)
	}
	if *strict && !allMet(rows) {
		log.Fatal("a target is missed")
	}
}

// run measures the figures that match, and prints rows as they come. A figure that
// cannot be measured is a row that says why, and misses its target.
func run(only string) (rows []row, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	wanted, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	l, err := newLab(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	fmt.Print(tableHead)
	for _, f := range figures() {
		if !wanted.MatchString(f.name) {
			continue
		}
		began := time.Now()
		measured, err := f.measure(ctx, l)
		if err != nil {
			measured = append(measured, row{what: f.name, failure: err})
		}
		for _, r := range measured {
			fmt.Print(r)
		}
		log.Printf("%s took %.1f s", f.name, time.Since(began).Seconds())
		rows = append(rows, measured...)
	}
	return rows, nil
}
