package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// lineBufferBytes holds the longest line of a stream that is looked at whole:
// the longest run of text that a delta can carry, and its columns.
const lineBufferBytes = 1<<20 + 1<<10

// target is a server that takes turns: the floor, or the server under test.
type target struct {
	*process
	name       string
	client     *http.Client
	sessions   bool // its turns belong to sessions
	dataFolder string
	readyAfter time.Duration // from its start
	buffers    sync.Pool     // of *bufio.Reader
}

// turnsURL is where the turns of a conversation go: for the floor always the
// same, for the server under test a new session's.
func (t *target) turnsURL(ctx context.Context) (string, error) {
	if !t.sessions {
		return t.url + "/turns", nil
	}
	answer, err := t.do(ctx, http.MethodPost, t.url+"/v1/sessions", "{}", "application/json")
	if err != nil {
		return "", fmt.Errorf("make a session: %w", err)
	}
	defer answer.Body.Close()
	var session struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&session); err != nil || session.ID == "" {
		return "", fmt.Errorf("make a session: no id in the answer: %w", err)
	}
	return t.url + "/v1/sessions/" + session.ID + "/turns", nil
}

// do sends a request; any status but 2xx is an error.
func (t *target) do(ctx context.Context, method, url, body, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", accept)
	answer, err := t.client.Do(req)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000)) // what there is of an explanation
		answer.Body.Close()
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, answer.Status, text)
	}
	return answer, nil
}

// took is what a client saw of a turn.
type took struct {
	firstText time.Duration // from before the POST to the first text
	whole     time.Duration // to the end of the answer
	textBytes int64         // of the answer, as it was streamed
}

// turn posts a turn and reads its stream to the end. A turn that does not
// complete is an error.
func (t *target) turn(ctx context.Context, turnsURL string) (took, error) {
	began := time.Now()
	answer, err := t.do(ctx, http.MethodPost, turnsURL, `{"input":"Say what you know of load lines."}`, "text/event-stream")
	if err != nil {
		return took{}, err
	}
	defer answer.Body.Close()
	lines, ok := t.buffers.Get().(*bufio.Reader)
	if !ok {
		lines = bufio.NewReaderSize(nil, lineBufferBytes)
	}
	defer t.buffers.Put(lines)
	lines.Reset(answer.Body)
	result, err := readTurn(lines, began)
	if err != nil {
		return result, fmt.Errorf("a turn of %s: %w", t.name, err)
	}
	return result, nil
}

// readTurn reads the events of a turn, of either target, to the end of the
// stream. The text of a token holds nothing that JSON escapes, so its bytes are
// counted without decoding.
func readTurn(lines *bufio.Reader, began time.Time) (seen took, err error) {
	event, last := "", "" // of the lines since the last blank one; of the stream
	for {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			seen.whole = time.Since(began)
			if last != "done" && last != "turn.completed" {
				return seen, fmt.Errorf("its last event is %q", last)
			}
			return seen, nil
		}
		if err != nil {
			return seen, err
		}
		if len(line) == 0 {
			event = ""
		} else if name, is := bytes.CutPrefix(line, []byte("event: ")); is {
			event = string(name)
			last = event
		} else if data, is := bytes.CutPrefix(line, []byte("data: ")); is && (event == "" || event == "item.delta") {
			n := textBytes(data)
			if n > 0 && seen.textBytes == 0 {
				seen.firstText = time.Since(began)
			}
			seen.textBytes += n
		}
	}
}

// readLine returns the next line without its end, valid until the next call. Of
// a line that the buffer does not hold it returns the beginning.
func readLine(lines *bufio.Reader) ([]byte, error) {
	line, err := lines.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.TrimRight(line, "\r\n"), err
	}
	line = bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = lines.ReadSlice('\n')
	}
	return line, err
}

// textBytes is the length of the last column "text" of a JSON object in which
// that is the last column.
func textBytes(data []byte) int64 {
	column := []byte(`"text":"`)
	at := bytes.LastIndex(data, column)
	if at < 0 {
		return 0
	}
	return int64(bytes.LastIndexByte(data, '"') - at - len(column))
}
