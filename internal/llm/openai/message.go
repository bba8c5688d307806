package openai

import (
	"loadline/internal/llm"
	"loadline/internal/session"
)

// message is one message of a request.
type message struct {
	role             string
	content          *string // nil beside calls only
	reasoningContent string
	reasoning        string
	calls            []toolCall
	callN            int64 // of the call that a tool message answers; 0: none
}

type toolCall struct {
	n         int64
	tool      string
	arguments string
}

// appendJSON appends the wire form.
func (m *message) appendJSON(b []byte) []byte {
	b = append(b, `{"role":"`...)
	b = append(b, m.role...)
	b = append(b, `","content":`...)
	if m.content == nil {
		b = append(b, "null"...)
	} else {
		b = session.AppendJSONString(b, *m.content)
	}
	b = appendField(b, "reasoning_content", m.reasoningContent)
	b = appendField(b, "reasoning", m.reasoning)
	if len(m.calls) > 0 {
		b = append(b, `,"tool_calls":`...)
		for i := range m.calls {
			b = append(b, "[,"[min(i, 1)])
			b = m.calls[i].appendJSON(b)
		}
		b = append(b, ']')
	}
	if m.callN != 0 {
		b = append(b, `,"tool_call_id":"`...)
		b = append(llm.AppendCallID(b, m.callN), '"')
	}
	return append(b, '}')
}

func (c *toolCall) appendJSON(b []byte) []byte {
	b = append(b, `{"id":"`...)
	b = llm.AppendCallID(b, c.n)
	b = append(b, `","type":"function","function":{"name":`...)
	b = session.AppendJSONString(b, c.tool)
	b = append(b, `,"arguments":`...)
	b = session.AppendJSONString(b, c.arguments)
	return append(b, "}}"...)
}

func appendField(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	return session.AppendJSONString(b, text)
}
