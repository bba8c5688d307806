package main

import (
	"bufio"
	"errors"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadTurnCountsStreamedText(t *testing.T) {
	const delta = "id: 4.5\nevent: item.delta\n" + `data: {"type":"item.delta","item_n":2,"kind":"assistant_message","at_byte":0,"text":"word "}` + "\n\n"
	const item = "id: 5\nevent: item\n" + `data: {"type":"item","item":{"assistant_message":{"text":"word word "}}}` + "\n\n"
	long := `data: {"text":"` + strings.Repeat("word ", lineBufferBytes/5) + `"}`
	tests := []struct {
		name, stream string
		want         int64
		wantErr      string
	}{
		{"floor", "data: {\"text\":\"word \"}\n\ndata: {\"text\":\"word \"}\n\nevent: done\ndata: {}\n\n", 10, ""},
		{"server", ": ping\n\n" + delta + delta + item + "event: turn.completed\ndata: {\"turn\":{\"input\":\"x\"}}\n\n", 10, ""},
		{"long item", delta + "event: item\n" + long + "\n\nevent: turn.completed\ndata: {}\n\n", 5, ""},
		{"no text", "event: done\ndata: {}\n\n", 0, ""},
		{"failed", delta + "event: turn.failed\ndata: {}\n\n", 5, `its last event is "turn.failed"`},
		{"error of the floor", "event: error\ndata: {}\n\n", 0, `its last event is "error"`},
		{"cut off", delta, 5, `its last event is "item.delta"`},
		{"empty", "", 0, `its last event is ""`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			seen, err := readTurn(bufio.NewReaderSize(strings.NewReader(test.stream), lineBufferBytes), time.Now())
			if (err == nil) != (test.wantErr == "") || err != nil && err.Error() != test.wantErr {
				t.Errorf("error %v, want %q", err, test.wantErr)
			}
			if seen.textBytes != test.want || (seen.firstText > 0) != (test.want > 0) || seen.whole < seen.firstText {
				t.Errorf("readTurn = %+v, want %d bytes of text", seen, test.want)
			}
		})
	}
}

func TestProcessStartsAndStops(t *testing.T) {
	folder := t.TempDir()
	binary := filepath.Join(folder, "fakemodel")
	if text, err := exec.Command("go", "build", "-o", binary, "loadline/bench/fakemodel").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, text)
	}
	p, err := start(t.Context(), folder, binary)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post(p.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"fake-20"}`))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("status %s, want 200", answer.Status)
	}
	if rss, err := p.rss(); err != nil || rss < 1<<20 {
		t.Errorf("rss = %d, %v, want a MiB at least", rss, err)
	}
	if _, err := p.cpu(); err != nil {
		t.Errorf("cpu: %v", err)
	}
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}

	if p, err = start(t.Context(), folder, binary, "-tokens", "none"); err == nil {
		t.Fatalf("a program that ends at once is started at %s", p.url)
	}
	if !strings.Contains(err.Error(), `"none" is not a number`) {
		t.Errorf("error %q does not say what the program said", err)
	}
}

func TestParseProc(t *testing.T) {
	if rss, err := parseRSS([]byte("Name:\tserver\nVmHWM:\t  900 kB\nVmRSS:\t   20480 kB\nThreads:\t5\n")); err != nil || rss != 20<<20 {
		t.Errorf("parseRSS = %d, %v, want 20 MiB", rss, err)
	}
	cpu, err := parseCPU([]byte("7 (a ) b) S 1 7 7 0 -1 4194560 100 0 0 0 150 25 0 0 20 0 1 0"))
	if err != nil || cpu != 1750*time.Millisecond {
		t.Errorf("parseCPU = %v, %v, want 1.75s", cpu, err)
	}
	for _, bad := range []string{"", "7 (x) S 1", "7 (x) S 1 7 7 0 -1 4194560 100 0 0 0 x y"} {
		if _, err := parseCPU([]byte(bad)); err == nil {
			t.Errorf("parseCPU(%q) is accepted", bad)
		}
	}
	if _, err := parseRSS([]byte("Name:\tserver\n")); err == nil {
		t.Error("parseRSS accepts a status without VmRSS")
	}
}

func TestRows(t *testing.T) {
	tests := []struct {
		row  row
		met  bool
		want string
	}{
		{row{what: "a", floor: "1", server: "2", got: 1, unit: " ms more", limit: 1}, true, "| a | 1 | 2 | 1 ms more | ≤ 1 ms more | met |\n"},
		{row{what: "a", got: 1.01, unit: " ms", limit: 1}, false, "| a |  |  | 1.01 ms | ≤ 1 ms | **missed** |\n"},
		{row{what: "a", got: 60, unit: " %", limit: 60, aim: 80, atLeast: true}, true, "| a |  |  | 60 % | ≥ 60 % (aim: 80) | met |\n"},
		{row{what: "a", got: 59.9, unit: " %", limit: 60, atLeast: true}, false, "| a |  |  | 59.9 % | ≥ 60 % | **missed** |\n"},
		{row{what: "a", got: 3.5, open: true}, true, "| a |  |  | 3.5 |  |  |\n"},
		{row{what: "a", failure: errors.New("no | server:\nkilled")}, false, "| a | | | not measured: no / server: killed | | **missed** |\n"},
	}
	for _, test := range tests {
		if got := test.row.met(); got != test.met {
			t.Errorf("%+v: met = %t", test.row, got)
		}
		if diff := cmp.Diff(test.want, test.row.String()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestReplaceFiguresKeepsTheRest(t *testing.T) {
	const text = "# Title\n" + markBegin + "old\n" + markEnd + "method\n"
	got, err := replaceFigures(text, "| new |\n")
	if want := "# Title\n" + markBegin + "\n| new |\n\n" + markEnd + "method\n"; err != nil || got != want {
		t.Errorf("replaceFigures = %q, %v, want %q", got, err, want)
	}
	for _, bad := range []string{"", markBegin, markEnd, markEnd + markBegin} {
		if _, err := replaceFigures(bad, "new"); err == nil {
			t.Errorf("replaceFigures(%q) is accepted", bad)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		samples []float64
		want    float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(test.samples); got != test.want {
			t.Errorf("median(%v) = %v, want %v", test.samples, got, test.want)
		}
	}
}

func TestParseCut(t *testing.T) {
	rows, err := parseCut("goos: linux\nBenchmarkCut24MB-2   \t  1000\t   1500000 ns/op\t16000.00 MB/s\t   32768 B/op\t       3 allocs/op\nPASS\n")
	if err != nil || len(rows) != 2 || rows[0].got != 1.5 || rows[1].got != 32 {
		t.Errorf("parseCut = %+v, %v, want 1.5 ms and 32 KiB", rows, err)
	}
	if _, err := parseCut("PASS\n"); err == nil {
		t.Error("parseCut accepts an output without a result")
	}
}
