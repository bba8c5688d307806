package file

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

const (
	sniffBytes = 8000      // looked at to tell text from binary, as git does
	blockBytes = 256 << 10 // read at a time, and the longest line that comes whole
)

var errBinary = errors.New("this is a binary file, not text")

// charset is how a text is encoded, known by its byte order mark.
type charset string

const (
	charsetUTF8    charset = "" // or anything else without NUL
	charsetUTF8BOM charset = "UTF-8 with BOM"
	charsetUTF16LE charset = "UTF-16LE"
	charsetUTF16BE charset = "UTF-16BE"
)

// sniff tells the charset of a text that begins with head, and the length of its
// byte order mark. It fails with errBinary when it is no text.
func sniff(head []byte) (c charset, markBytes int, err error) {
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00")): // UTF-32
		return "", 0, errBinary
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return charsetUTF16LE, 2, nil
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return charsetUTF16BE, 2, nil
	case bytes.IndexByte(head, 0) >= 0:
		return "", 0, errBinary
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		return charsetUTF8BOM, 3, nil
	}
	return charsetUTF8, 0, nil
}

// utf16Of is the codec of a UTF-16 charset, without its byte order mark.
func utf16Of(c charset) encoding.Encoding {
	if c == charsetUTF16BE {
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
}

// text reads a file as UTF-8, a block of whole lines at a time. Its buffer serves
// one file after the other.
type text struct {
	charset charset

	src      io.Reader
	buf      []byte
	from, to int // what of buf is not yet returned
	err      error
}

func newText() *text { return &text{buf: make([]byte, blockBytes)} }

// reset goes on with another file. It fails with errBinary when that is no text.
func (t *text) reset(f io.Reader) error {
	n, err := io.ReadFull(f, t.buf[:sniffBytes])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	c, mark, err := sniff(t.buf[:n])
	if err != nil {
		return err
	}
	t.charset, t.src, t.from, t.to, t.err = c, f, mark, n, nil
	if c == charsetUTF16LE || c == charsetUTF16BE {
		head := bytes.NewReader(bytes.Clone(t.buf[mark:n]))
		t.src = transform.NewReader(io.MultiReader(head, f), utf16Of(c).NewDecoder())
		t.from, t.to = 0, 0
	}
	return nil
}

// next returns the next whole lines, each with its line break. A last line without
// one comes as it is; a line that is longer than a block comes in pieces, cut on a
// rune boundary. At the end of the file it fails with io.EOF. What it returns is
// valid until the next call.
func (t *text) next() ([]byte, error) {
	copy(t.buf, t.buf[t.from:t.to])
	t.from, t.to = 0, t.to-t.from
	for t.err == nil && t.to < len(t.buf) {
		var n int
		n, t.err = t.src.Read(t.buf[t.to:])
		t.to += n
	}
	if t.to == 0 {
		return nil, t.err
	}
	if t.err != nil && !errors.Is(t.err, io.EOF) {
		return nil, t.err
	}
	end := t.to
	if t.err == nil {
		if i := bytes.LastIndexByte(t.buf[:t.to], '\n'); i >= 0 {
			end = i + 1
		} else {
			end = wholeRunes(t.buf[:t.to])
		}
	}
	t.from = end
	return t.buf[:end], nil
}

// wholeRunes is the length of b without a rune at its end that is cut.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

// cutLine splits off the first line, without its line break. The line is not whole
// when b ends before it does.
func cutLine(b []byte) (line, rest []byte, whole bool) {
	line, rest, whole = bytes.Cut(b, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), rest, whole
}
