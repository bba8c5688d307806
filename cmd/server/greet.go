package main

import (
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"

	"loadline/internal/manifest"
)

// greet tells a person where the server is and what to try.
func greet(w io.Writer, m *manifest.Manifest, address net.Addr) {
	fmt.Fprintf(w, "Loadline %s listens on http://%s\n", version, address)
	for _, name := range slices.Sorted(maps.Keys(m.Projects)) {
		p := m.Projects[name]
		fmt.Fprintf(w, "  project %s: %s (%s), model %s\n", name, p.Root, p.Permission, modelName(p.Model))
	}
	define, auth := "", ""
	if len(m.Server.Keys) > 0 {
		define, auth = "A='Authorization: Bearer YOUR_KEY'; ", ` -H "$A"`
	}
	fmt.Fprintf(w, `Try it:
  %[2]sJ='Content-Type: application/json'; S=$(curl -s %[1]s/v1/sessions%[3]s -H "$J" -d '%[4]s' | grep -om1 'ses_[0-9a-f]*')
  curl -sN %[1]s/v1/sessions/$S/turns%[3]s -H "$J" -H 'Accept: text/event-stream' -d '{"input":"list the files"}'
`, localURL(address), define, auth, sessionBody(m))
}

// localURL is how a client on this machine reaches the server.
func localURL(address net.Addr) string {
	if tcp, ok := address.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return "http://127.0.0.1:" + strconv.Itoa(tcp.Port)
	}
	return "http://" + address.String()
}

// sessionBody makes a session in the project that is meant by default, or else in
// the first.
func sessionBody(m *manifest.Manifest) string {
	if m.DefaultProject() != "" {
		return "{}"
	}
	return fmt.Sprintf(`{"project":%q}`, slices.Min(slices.Collect(maps.Keys(m.Projects))))
}

func modelName(m manifest.Model) string {
	if m.Provider == "demo" {
		return "demo (no model is configured)"
	}
	return m.Provider + "/" + m.Name
}
