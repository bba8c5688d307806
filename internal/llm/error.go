package llm

import (
	"fmt"
	"time"
)

// Class says what to do about an error.
type Class string

// The classes of error.
const (
	ClassRetry  Class = "retry"  // the same request may succeed later: 408, 429, 5xx, a broken stream
	ClassShrink Class = "shrink" // the request is too large; sent again unchanged it is doomed
	ClassFail   Class = "fail"   // it will never succeed: authentication, bad request
)

// Error is a provider's refusal of a request, or a broken exchange.
type Error struct {
	Class      Class
	Status     int           // HTTP status of the answer; 0 when none arrived
	RetryAfter time.Duration // wait the provider asked for; 0 when it named none
	Err        error         // cause, never nil; its text may be shown to a person and holds no key
}

func (e *Error) Error() string {
	if e.Status == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("HTTP %d: %v", e.Status, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
