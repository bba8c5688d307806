package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// systemd itself reads the unit without a word, and finds it hardened.
func TestUnitIsValidAndHardened(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../deploy/loadline.service")
	if err != nil {
		t.Fatal(err)
	}
	const installed = "/usr/local/bin/loadline"
	if !strings.Contains(string(text), "ExecStart="+installed+" ") {
		t.Fatalf("the unit does not start %s", installed)
	}
	unit := filepath.Join(t.TempDir(), "loadline.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), installed, binary)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"verify", "--man=no", unit},
		{"security", "--offline=true", "--no-pager", "--threshold=20", unit}, // tenths; 100 is a unit without any of it
	} {
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}

// compose is what this test wants of compose.yaml.
type compose struct {
	Services map[string]struct {
		Build struct {
			Context    string
			Dockerfile string
		}
		Ports   []string
		Volumes []string
		Secrets []string
	}
	Secrets map[string]struct{ File string }
	Volumes map[string]any
}

// What compose.yaml mounts is there, what it opens is open to this machine only, and
// Prometheus finds its key. No container engine is asked.
func TestComposeMountsWhatIsThere(t *testing.T) {
	var c compose
	readYAML(t, "../deploy/compose.yaml", &c)
	if len(c.Services) != 3 {
		t.Fatalf("%d services, want 3", len(c.Services))
	}
	for name, service := range c.Services {
		if b := service.Build; b.Context != "" {
			mustExist(t, filepath.Join("../deploy", b.Context, b.Dockerfile))
		}
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s opens %s to other machines", name, port)
			}
		}
		for _, volume := range service.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if _, named := c.Volumes[source]; !named {
				mustExist(t, filepath.Join("../deploy", source))
			}
		}
		for _, secret := range service.Secrets {
			if c.Secrets[secret].File == "" {
				t.Errorf("%s wants the secret %s, which is no file", name, secret)
			}
		}
	}
	var p struct {
		Jobs []struct {
			Authorization struct {
				CredentialsFile string `yaml:"credentials_file"`
			}
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	readYAML(t, "../deploy/prometheus/prometheus.yml", &p)
	if got, want := p.Jobs[0].Authorization.CredentialsFile, "/run/secrets/"+c.Services["prometheus"].Secrets[0]; got != want {
		t.Errorf("Prometheus reads its key from %s, compose.yaml gives it %s", got, want)
	}
	if got := p.Jobs[0].StaticConfigs[0].Targets[0]; got != "loadline:8080" || c.Services["loadline"].Build.Context == "" {
		t.Errorf("Prometheus asks %s, which is no service", got)
	}
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func mustExist(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
