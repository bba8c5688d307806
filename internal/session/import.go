package session

// Imported is what became of a document that was imported as a session.
type Imported struct {
	Session Session  `json:"session"`
	Format  string   `json:"format"` // that the document was read in
	Items   int      `json:"items"`  // of its history now
	Repairs []Repair `json:"repairs"`
	// RepairsTotal counts the repairs that are not told one by one, too.
	RepairsTotal int `json:"repairs_total"`
}

// Repair is something of an imported document that could not be taken over as it
// was.
type Repair struct {
	// Index is the place, from 0, of the message or item in the list that was read.
	Index  int        `json:"index"`
	Code   RepairCode `json:"code"`
	Detail string     `json:"detail"`
}

// RepairCode says what was repaired.
type RepairCode string

// The codes of repairs.
const (
	RepairOrphanCall      RepairCode = "orphan_call"      // a call without a result got one
	RepairOrphanResult    RepairCode = "orphan_result"    // a result without a call became text
	RepairResultMoved     RepairCode = "result_moved"     // a result was put where its call wants it
	RepairResultTruncated RepairCode = "result_truncated" // a result was cut to its limit
	RepairBlankText       RepairCode = "blank_text"       // a blank text was dropped
	RepairRawArguments    RepairCode = "raw_arguments"    // arguments that are no JSON object were kept raw
	RepairToolRenamed     RepairCode = "tool_renamed"     // a tool has a name now that services take
	RepairPartDropped     RepairCode = "part_dropped"     // a part that is no text was dropped
	RepairMessageDropped  RepairCode = "message_dropped"  // a message that cannot be read was dropped
	RepairSystemDropped   RepairCode = "system_dropped"   // instructions were dropped: those of the server hold
	RepairOutputDropped   RepairCode = "output_dropped"   // the whole of a cut output stayed behind
	RepairHeadDropped     RepairCode = "head_dropped"     // the title or the metadata were too large
)

// NotImportable refuses a document of which no history can be made.
type NotImportable struct{ Detail string }

func (e *NotImportable) Error() string { return e.Detail }
