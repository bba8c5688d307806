package manifest

import (
	"reflect"
	"time"
)

// Default is what holds where no manifest says otherwise. Paths are as a manifest
// would write them, relative to the current folder, and there is no project yet:
// Load makes the first absolute and adds the project named default.
func Default() *Manifest {
	return &Manifest{
		Server: Server{
			Listen:         "127.0.0.1:8080",
			AllowedHosts:   []string{},
			AllowedOrigins: []string{},
			BodyMaxBytes:   1 << 20,
			ImportMaxBytes: 32 << 20,
			DrainTimeout:   Duration(5 * time.Second),
		},
		Store:     Store{Dir: "loadline-data"},
		Artifacts: Artifacts{Enabled: true, QuotaBytes: 1 << 30, MaxAge: Duration(7 * 24 * time.Hour)},
		Settings: Settings{
			Model: Model{
				Provider:     providerDemo,
				MaxAttempts:  4,
				RetryMaxWait: Duration(30 * time.Second),
				IdleTimeout:  Duration(2 * time.Minute),
			},
			Worker: defaultWorker(),
			Tools:  map[string]Tool{"Bash": {Enabled: false}},
			Memory: Memory{
				ExtractThresholdBytes:         64 << 10,
				ExtractChunkBytes:             128 << 10,
				ExtractWorkerMaxTurns:         8,
				DeadLetterAfter:               5,
				MaxParallel:                   2,
				ConsolidationThresholdRecords: 50,
				ConsolidationThresholdBytes:   1 << 20,
				RecallMaxBytes:                4096,
			},
			Compaction: Compaction{MaxCalls: 4, SummaryMaxBytes: 8192},
		},
	}
}

func defaultWorker() Worker {
	return Worker{
		MaxSteps:        50,
		MaxCallsPerStep: 64,
		ToolTimeout:     Duration(2 * time.Minute),
		StallAfter:      Duration(10 * time.Minute),
		OnRestart:       "resume",
		ToolOutput: ToolOutput{
			DefaultMaxBytes: 16 << 10,
			StepMaxBytes:    128 << 10,
			CaptureMaxBytes: 8 << 20,
		},
	}
}

// defaultProject is the name of the project that there is without [projects].
const defaultProject = "default"

// defaultKeyEnv is where the key for a provider's own service is looked for when
// neither api_key_env, api_key_file nor base_url is set; empty for none.
func defaultKeyEnv(provider string) string {
	switch provider {
	case providerOpenAI:
		return "OPENAI_API_KEY"
	case providerAnthropic:
		return "ANTHROPIC_API_KEY"
	}
	return ""
}

// element is what a new entry of a map of the manifest starts from.
func element(t reflect.Type) reflect.Value {
	switch t {
	case reflect.TypeFor[Project]():
		return reflect.ValueOf(Project{Permission: PermissionRead})
	case reflect.TypeFor[Tool]():
		return reflect.ValueOf(Tool{Enabled: true})
	}
	return reflect.Zero(t)
}
