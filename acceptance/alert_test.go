package acceptance

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	rulesFile = "../deploy/prometheus/loadline.rules.yml"
	rulesTest = "../deploy/prometheus/loadline.rules_test.yml"
)

// ruleGroups is a file of rules, as far as tests want it.
type ruleGroups struct {
	Groups []struct {
		Rules []struct {
			Alert, Record, Expr string
			Labels, Annotations map[string]string
		}
	}
}

// alertNames are those of a file of rules, in its order.
func (r ruleGroups) alertNames() (all []string) {
	for _, group := range r.Groups {
		for _, rule := range group.Rules {
			if rule.Alert != "" {
				all = append(all, rule.Alert)
			}
		}
	}
	return all
}

// What the rules compute with is what the server has.
func TestRulesNameWhatTheServerHas(t *testing.T) {
	var rules ruleGroups
	readYAML(t, rulesFile, &rules)
	var text strings.Builder
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			text.WriteString(rule.Expr + "\n")
		}
	}
	checkNames(t, launch(t, "").client, text.String())
}

// Whoever is woken by an alert finds a chapter about it.
func TestEachAlertIsExplained(t *testing.T) {
	var rules ruleGroups
	readYAML(t, rulesFile, &rules)
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var explained []string
	for _, found := range regexp.MustCompile(`(?m)^### (Loadline\w+)$`).FindAllSubmatch(text, -1) {
		explained = append(explained, string(found[1]))
	}
	if names := rules.alertNames(); len(names) == 0 || !slices.Equal(names, explained) {
		t.Errorf("the alerts are %q; docs/operations.md explains %q", names, explained)
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if want := "docs/operations.md#" + strings.ToLower(rule.Alert); rule.Alert != "" && rule.Annotations["runbook"] != want {
				t.Errorf("the runbook of %s is %q, want %q", rule.Alert, rule.Annotations["runbook"], want)
			}
		}
	}
}

// promtool judges what the tests of the rules hold; this one says that they hold
// enough: each alert is expected to fire at one time and to be silent before and after.
func TestEachAlertIsSeenToFireAndToClear(t *testing.T) {
	var rules ruleGroups
	readYAML(t, rulesFile, &rules)
	var tested struct {
		Tests []struct {
			Alerts []struct {
				Name string `yaml:"alertname"`
				Want []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	readYAML(t, rulesTest, &tested)
	seen := map[string]string{} // one letter for each look at it, in order of time
	for _, test := range tested.Tests {
		for _, alert := range test.Alerts {
			seen[alert.Name] += map[bool]string{true: "F", false: "-"}[len(alert.Want) > 0]
		}
	}
	for _, name := range rules.alertNames() {
		if !strings.HasPrefix(seen[name], "-F-") {
			t.Errorf("%s is looked at as %q: F it fires, - it is silent", name, seen[name])
		}
	}
}
