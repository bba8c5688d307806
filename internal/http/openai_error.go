package http

import (
	"net/http"
	"strings"
)

// openAIError is the error form of OpenAI.
type openAIError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    string `json:"code"`
	Param   string `json:"param,omitempty"`
}

type openAIFailure struct {
	Error openAIError `json:"error"`
}

// speaksOpenAI reports whether refusals of this request have the form of OpenAI.
func speaksOpenAI(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	return r.Method == http.MethodPost && r.URL.Path == chatPath || reads && r.URL.Path == modelsPath
}

// openAIProblem is a problem in the form of OpenAI.
func openAIProblem(p *problem) (openAIFailure, int) {
	e := openAIError{Message: p.Detail, Type: openAIErrorType(p.Status), Code: string(p.Code)}
	if len(p.Errors) > 0 {
		e.Param = openAIParam(p.Errors[0].Pointer)
	}
	if p.Status == http.StatusNotFound && e.Param == "model" {
		e.Code = "model_not_found"
	}
	return openAIFailure{e}, p.Status
}

func openAIErrorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

// openAIParam is a JSON Pointer as OpenAI writes it: messages.3.content.
func openAIParam(pointer string) string {
	return strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
}
