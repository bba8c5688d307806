// Package loadline holds the contract of the HTTP API, where both people and the
// server find it: openapi.yaml at the root of the module.
package loadline

import _ "embed"

//go:embed openapi.yaml
var contract []byte

// Contract is the text of openapi.yaml. Nobody may change it.
func Contract() []byte { return contract }
