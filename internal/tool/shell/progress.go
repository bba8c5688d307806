package shell

import (
	"bytes"
	"time"

	"loadline/internal/session"
	"loadline/internal/tool"
)

const (
	progressEvery    = time.Second
	progressMaxBytes = 200
)

// progress tells now and then the last line that a command printed.
type progress struct {
	tell   func(line string)
	toldAt time.Time // zero at first
}

// saw takes the output as it comes.
func (p *progress) saw(output []byte) {
	now := time.Now()
	if now.Sub(p.toldAt) < progressEvery {
		return
	}
	line := bytes.TrimSpace(output)
	line = line[bytes.LastIndexAny(line, "\r\n")+1:]
	if len(line) == 0 {
		return
	}
	p.toldAt = now
	p.tell(tool.Cut(session.Clean(string(line[:min(len(line), progressMaxBytes)])), progressMaxBytes))
}
