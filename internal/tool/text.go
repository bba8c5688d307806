package tool

import (
	"strconv"
	"unicode/utf8"
)

// MarkerMaxBytes is the most that the worker's note about dropped bytes takes, its
// line breaks and 19 digits included. A tool that chooses what to show of a longer
// output leaves this much of Call.LimitBytes free, and nothing of its choice is cut.
const MarkerMaxBytes = 67

// Cut is the longest beginning of s, at most maxBytes long, that ends on a rune
// boundary. A maxBytes below 0 counts as 0.
func Cut(s string, maxBytes int) string {
	if maxBytes >= len(s) {
		return s
	}
	end := max(0, maxBytes)
	for i := 1; i < utf8.UTFMax && end > 0 && !utf8.RuneStart(s[end]); i++ {
		end--
	}
	return s[:end]
}

// Grouped writes n with a comma between groups of three digits: 1,204.
func Grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
