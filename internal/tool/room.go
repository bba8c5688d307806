package tool

// MarkerMaxBytes is the most that the worker's note about dropped bytes takes, its
// line breaks and 19 digits included. A tool that chooses what to show of a longer
// output leaves this much of Call.LimitBytes free, and nothing of its choice is cut.
const MarkerMaxBytes = 67
