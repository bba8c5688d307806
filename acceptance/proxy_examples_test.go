package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// nginx runs the example of deploy/ on other ports, in one process, with all its files
// in the proxy's folder.
func nginx(server string) func(*proxy) *exec.Cmd {
	return func(p *proxy) *exec.Cmd {
		p.write("site.conf", example(p.t, "nginx.conf",
			"127.0.0.1:8080", server, "listen 443 ", "listen "+p.address+" ", "listen 80;", "listen unix:"+p.dir+"/plain;",
			"/etc/ssl/certs/loadline.pem", p.dir+"/cert.pem", "/etc/ssl/private/loadline.key", p.dir+"/key.pem"))
		main := "daemon off; master_process off; pid nginx.pid; error_log stderr;\nevents {}\nhttp {\naccess_log off;\n"
		for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			main += fmt.Sprintf("%s_temp_path %s;\n", kind, kind)
		}
		_ = os.Remove(p.dir + "/plain") // of one that was killed
		main = p.write("main.conf", main+"include site.conf;\n}\n")
		return exec.Command(program(p.t, "nginx"), "-e", "stderr", "-p", p.dir, "-c", main)
	}
}

// caddy runs the example of deploy/ on another port, with the proxy's certificate.
func caddy(server string) func(*proxy) *exec.Cmd {
	return func(p *proxy) *exec.Cmd {
		site := example(p.t, "Caddyfile", "127.0.0.1:8080", server,
			publicName+" {", fmt.Sprintf("https://%s:%s {\n\ttls cert.pem key.pem", publicName, p.address[strings.LastIndex(p.address, ":")+1:]))
		p.write("Caddyfile", "{\n\tadmin off\n\tauto_https disable_redirects\n}\n"+site)
		cmd := exec.Command(program(p.t, "caddy"), "run")
		cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "HOME="+p.dir, "XDG_DATA_HOME="+p.dir, "XDG_CONFIG_HOME="+p.dir)
		return cmd
	}
}

// example is a file of deploy/ with each of the old texts replaced by the new one; each
// must be in it.
func example(t *testing.T, name string, oldnew ...string) string {
	t.Helper()
	file, err := os.ReadFile("../deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	text := string(file)
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(text, oldnew[i]) {
			t.Fatalf("%s has no %q", name, oldnew[i])
		}
		text = strings.ReplaceAll(text, oldnew[i], oldnew[i+1])
	}
	return text
}
