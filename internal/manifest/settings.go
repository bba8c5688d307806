package manifest

// Server is the section [server]: what is listened to, and who may ask.
type Server struct {
	// Listen is host:port; port 0 picks a free one. Default 127.0.0.1:8080. Beyond
	// loopback it needs Keys.
	Listen string `toml:"listen" rule:"listen"`
	// AllowedHosts are further names that a request may give as its Host, without
	// port. Default none; loopback and the host of Listen are always allowed.
	AllowedHosts []string `toml:"allowed_hosts" rule:"host"`
	// AllowedOrigins are origins of web pages that may change state. Default none.
	AllowedOrigins []string `toml:"allowed_origins" rule:"origin"`
	// BodyMaxBytes bounds the body of a request. Default 1 MiB.
	BodyMaxBytes int64 `toml:"body_max_bytes" min:"1024" max:"67108864"`
	// ImportMaxBytes bounds a document that is imported. Default 32 MiB.
	ImportMaxBytes int64 `toml:"import_max_bytes" min:"1024" max:"268435456"`
	// DrainTimeout is how long running turns may go on once the server stops.
	// Default 5s; 0s cuts them at once.
	DrainTimeout Duration `toml:"drain_timeout" min:"0"`
	// Keys are the digests of the keys that open the API, by the names of their
	// holders: "sha256:" and 64 lower-case hexadecimal digits. Default none: open.
	Keys map[string]string `toml:"keys,omitempty" rule:"digest" keys:"name"`
}

// Store is the section [store].
type Store struct {
	// Dir is the data folder, absolute after Load. Default loadline-data.
	Dir string `toml:"dir" rule:"path"`
}

// Artifacts is the section [artifacts]: the whole of outputs that the limit cut.
type Artifacts struct {
	// Enabled keeps them, and offers the tool that reads them. Default true. What was
	// kept before can be fetched, and is swept, all the same.
	Enabled bool `toml:"enabled"`
	// QuotaBytes is how much disk they may fill together; each counts as whole blocks
	// of 4096 bytes. The oldest go first. Default 1 GiB.
	QuotaBytes int64 `toml:"quota_bytes" min:"4096"`
	// MaxAge is when one is removed. Default 168h.
	MaxAge Duration `toml:"max_age"`
}

// Settings are the sections that a project's layer may hold too.
type Settings struct {
	Model  Model           `toml:"model"`
	Worker Worker          `toml:"worker"`
	Tools  map[string]Tool `toml:"tools,omitempty" keys:"tool"`
	Memory Memory          `toml:"memory"`
	// Compaction makes old messages short when a history outgrows its model.
	Compaction Compaction `toml:"compaction"`
}

// ToolEnabled tells whether the tool of this name, exact case, is switched on. A
// tool that no manifest names is on, but for those that are off by default: Bash.
func (s Settings) ToolEnabled(name string) bool {
	tool, named := s.Tools[name]
	return !named || tool.Enabled
}

// Worker is the section [worker]: how turns run.
type Worker struct {
	// Instructions are given to the model with each request. Default none. After
	// Load they are the text, also when it came from InstructionsFile.
	Instructions string `toml:"instructions"`
	// InstructionsFile names a UTF-8 file of up to 1 MiB, instead of Instructions;
	// absolute after Load.
	InstructionsFile string `toml:"instructions_file,omitempty" rule:"path"`
	// MaxSteps bounds the model requests of one turn. Default 50.
	MaxSteps int `toml:"max_steps" min:"1"`
	// MaxCallsPerStep bounds the tool calls of one answer that run. Default 64.
	MaxCallsPerStep int `toml:"max_calls_per_step" min:"1" max:"1024"`
	// ToolTimeout bounds one tool call. Default 2m.
	ToolTimeout Duration `toml:"tool_timeout"`
	// StallAfter is the silence after which a running turn counts as wedged.
	// Default 10m.
	StallAfter Duration `toml:"stall_after"`
	// OnRestart says what becomes of a turn that a crash cut: "resume" (the
	// default) or "interrupt".
	OnRestart string `toml:"on_restart" oneof:"resume interrupt"`
	// ToolOutput limits what tools put into the history.
	ToolOutput ToolOutput `toml:"tool_output"`
}

// Tool is a section [tools.NAME].
type Tool struct {
	// Enabled offers the tool to the model. Default true; of Bash false.
	Enabled bool `toml:"enabled"`
}

// Memory is the section [memory]: what is distilled from histories, and when.
type Memory struct {
	Enabled bool `toml:"enabled"` // default false
	// ExtractThresholdBytes is the rendered size of new items that starts an
	// extract. Default 65536.
	ExtractThresholdBytes int `toml:"extract_threshold_bytes" min:"1"`
	// ExtractChunkBytes is how much of a backlog one pass reads. Default 131072.
	ExtractChunkBytes int `toml:"extract_chunk_bytes" min:"128"`
	// ExtractWorkerMaxTurns bounds the model requests of one pass. Default 8.
	ExtractWorkerMaxTurns int `toml:"extract_worker_max_turns" min:"1"`
	// DeadLetterAfter is how often the same range may fail. Default 5.
	DeadLetterAfter int `toml:"dead_letter_after" min:"1"`
	// MaxParallel bounds the passes of the whole server. Default 2.
	MaxParallel int `toml:"max_parallel" min:"1" scope:"server"`
	// ConsolidationThresholdRecords starts a consolidation. Default 50.
	ConsolidationThresholdRecords int `toml:"consolidation_threshold_records" min:"1"`
	// ConsolidationThresholdBytes starts one too. Default 1 MiB.
	ConsolidationThresholdBytes int `toml:"consolidation_threshold_bytes" min:"1"`
	// RecallMaxBytes bounds what a new session is told. Default 4096.
	RecallMaxBytes int `toml:"recall_max_bytes" min:"128"`
	// Language of records and documents, as a person would name it. Default empty:
	// as the user writes.
	Language string `toml:"language" rule:"line"`
	// ExtractModel and ConsolidationModel start from the main model and change what
	// their sections set; after Load they are whole.
	ExtractModel       Model `toml:"extract_model"`
	ConsolidationModel Model `toml:"consolidation_model"`
}

// Compaction is the section [compaction]: how the oldest part of a history that does
// not fit its model any more is made short. The history itself is never changed.
type Compaction struct {
	// MaxCalls bounds the model requests of one compaction. Default 4; 0 asks no
	// model: what was said is then shortened by rule.
	MaxCalls int `toml:"max_calls" min:"0" max:"100"`
	// SummaryMaxBytes bounds what stands for the old part. Default 8192.
	SummaryMaxBytes int `toml:"summary_max_bytes" min:"1024" max:"1048576"`
	// Model starts from the main model and changes what its section sets; after
	// Load it is whole.
	Model Model `toml:"model"`
}

// Project is a section [projects.NAME], and the settings that hold in it.
type Project struct {
	// Root is the folder that its tools see; absolute after Load. It has no default.
	Root string `toml:"root" rule:"path"`
	// Permission says what tools may do in Root. Default PermissionRead.
	Permission Permission `toml:"permission" oneof:"read write"`
	// Manifest names the project's layer; absolute after Load. Default none.
	Manifest string `toml:"manifest,omitempty" rule:"path"`
	// Settings are the effective ones: defaults, files in order, the layer.
	Settings `toml:"-"`
}

// Permission is what the tools of a project may do with its files.
type Permission string

// The permissions.
const (
	PermissionRead  Permission = "read"
	PermissionWrite Permission = "write"
)
