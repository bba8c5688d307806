package session

import "fmt"

// InputTooLarge refuses an input that no request to the session's model can hold.
type InputTooLarge struct {
	InputBytes  int64
	LimitBytes  int64 // of an input, beside instructions and tools
	LimitTokens int64 // of a request
}

func (e *InputTooLarge) Error() string {
	return fmt.Sprintf("the input has %d bytes; a request to this model has room for %d tokens, instructions and tools included, which are at most %d bytes of input",
		e.InputBytes, e.LimitTokens, e.LimitBytes)
}
