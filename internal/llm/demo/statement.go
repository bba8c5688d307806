package demo

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxStatementChars bounds a statement; what is longer is not understood as one.
const maxStatementChars = 900

// statement is something that a person said and later sessions should know.
type statement struct{ kind, claim, why string }

// rule is how a kind of statement is said. Its form has the part that goes into the
// claim as its group.
type rule struct {
	kind  string
	form  *regexp.Regexp
	claim string // what goes before that part
	why   string // unless the person gave a reason
}

// What people say, one sentence each. The first form that fits counts.
var (
	preferForm  = regexp.MustCompile(`(?i)^(?:please )?i(?: would|'d)? prefer (.+)$`)
	alwaysForm  = regexp.MustCompile(`(?i)^(?:please )?((?:always|never) .+)$`)
	decidedForm = regexp.MustCompile(`(?i)^we(?: have|'ve)? decided (?:that |on )?(.+)$`)
	mustForm    = regexp.MustCompile(`(?i)^((?:we|it|they|the \S+) must .+)$`)
	openForm    = regexp.MustCompile(`(?i)^we have not decided (.+)$`)
	learnedForm = regexp.MustCompile(`(?i)^we(?: have|'ve)? learn(?:ed|t) that (.+)$`)
	noteForm    = regexp.MustCompile(`(?i)^(?:please )?(?:remember|note) that (.+)$`)
	sentenceEnd = regexp.MustCompile(`[.!?]+(?:\s+|$)|[。！？]+|\n+`)
	reasonForm  = regexp.MustCompile(`(?i),? because (.+)$`)
)

func rules() []rule {
	return []rule{
		{"preference", preferForm, "The person prefers ", "It is how the person wants things to be done."},
		{"preference", alwaysForm, "", "It is how the person wants things to be done."},
		{"open_question", openForm, "Not decided yet: ", "It will come back."},
		{"decision", decidedForm, "It was decided ", "No reason was given."},
		{"lesson", learnedForm, "", "It need not be found out again."},
		{"fact", noteForm, "", "The person asked to remember it."},
		{"constraint", mustForm, "", "It holds whatever anybody wishes."},
	}
}

// statements are those that a text makes.
func statements(text string) []statement {
	var all []statement
	for _, sentence := range sentenceEnd.Split(text, -1) {
		sentence = strings.Join(strings.Fields(sentence), " ")
		if utf8.RuneCountInString(sentence) > maxStatementChars {
			continue
		}
		for _, r := range rules() {
			if groups := r.form.FindStringSubmatch(sentence); groups != nil {
				all = append(all, r.statement(groups[1]))
				break
			}
		}
	}
	return all
}

func (r *rule) statement(said string) statement {
	why := r.why
	if at := reasonForm.FindStringSubmatchIndex(said); at != nil && at[0] > 0 {
		why = capital(said[at[2]:at[3]]) + "."
		said = said[:at[0]]
	}
	return statement{r.kind, capital(r.claim+said) + ".", why}
}

func capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// heard answers statements in a turn.
func heard(all []statement, remembers bool) string {
	var b strings.Builder
	b.WriteString("I have heard:\n\n")
	for _, s := range all {
		b.WriteString("- " + s.claim + "\n")
	}
	if remembers {
		b.WriteString("\nLater sessions of this project will know, once this one has been read for its memory.")
	} else {
		b.WriteString("\nThis project has no memory, so it ends with this session. A manifest with enabled = true in [memory] brings one.")
	}
	return b.String()
}

// told is what a session has been told of its project's memory: the quotation that
// its instructions end with.
func told(system string) string {
	var lines []string
	for line := range strings.Lines(system) {
		if strings.HasPrefix(line, ">") {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	if len(lines) == 0 {
		return "My instructions hold nothing about earlier sessions."
	}
	return "This is in my instructions, from earlier sessions:\n\n" + strings.Join(lines, "\n")
}
