package memory

import (
	"context"
	"errors"

	"loadline/internal/session"
)

var (
	errStopping    = errors.New("the server is stopping")
	errPassTimeout = errors.New("the pass ran out of time")
)

// outcomeOf says how a pass ended. The cause is that of its context, nil unless that
// ended before the pass did; code is that of the engine's turn, empty when the model
// just stopped.
func outcomeOf(v verdict, records int, cause error, code session.ErrorCode) session.Outcome {
	switch {
	case v == verdictValid && records > 0:
		return session.OutcomeStaged
	case v == verdictValid:
		return session.OutcomeEmpty
	case errors.Is(cause, errPassTimeout):
		return session.OutcomeProviderError
	case cause != nil:
		return session.OutcomeCancelled
	}
	switch code {
	case session.CodeRequestTooLarge, session.CodeInputTooLarge:
		return session.OutcomeContextTooLong
	case session.CodeProviderError:
		return session.OutcomeProviderError
	case session.CodeStepLimit:
		return session.OutcomeTurnLimit
	case "", session.CodeEmptyResponse:
		return unsubmitted(v)
	}
	return session.OutcomeToolError // an error of the engine itself
}

// unsubmitted is how a pass ended whose model stopped without a valid submission.
func unsubmitted(v verdict) session.Outcome {
	switch v {
	case verdictInvalid:
		return session.OutcomeInvalid
	case verdictOpen:
		return session.OutcomeToolError
	}
	return session.OutcomeNoSubmission
}

// noticeText is what the notice of an outcome says, always the same.
func noticeText(o session.Outcome) string {
	switch o {
	case session.OutcomeStaged:
		return "New records for the project's memory were found in this session."
	case session.OutcomeEmpty:
		return "Nothing in this part of the session was worth remembering."
	case session.OutcomeProviderError:
		return "The model that reads sessions for memory could not be asked. It is tried again later."
	case session.OutcomeContextTooLong:
		return "This part of the session is too long for the model that reads it for memory. A shorter part is tried."
	case session.OutcomeToolError:
		return "An internal error kept this part of the session from memory. It is tried again later."
	case session.OutcomeInvalid:
		return "The model submitted records that cannot be taken. It is tried again later."
	case session.OutcomeNoSubmission:
		return "The model submitted no records. It is tried again later."
	case session.OutcomeTurnLimit:
		return "The model used all its requests (memory.extract_worker_max_turns) without valid records. It is tried again later."
	case session.OutcomeStorageError:
		return "Records for memory could not be stored. It is tried again later."
	case session.OutcomeCancelled:
		return "Reading this session for memory was stopped. It goes on later."
	}
	return string(o)
}

// letterText is what the notice says when the range was set aside.
const letterText = "This part of the session was set aside, after it could not be read for memory several times. It can be read again on request."

// ended is the cause why a context ended, nil when it did not.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
