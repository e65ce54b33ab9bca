package consent

import (
	"encoding/json"
	"time"
)

// Entry is one link of the record's chain, as it is stored.
type Entry struct {
	Seq  int64           `json:"seq"` // from 1, without gaps
	Time time.Time       `json:"time"`
	Kind string          `json:"kind"` // "epoch", "decision", "outcome", "event"
	Ref  string          `json:"ref"`  // the request's id, or ""
	Body json.RawMessage `json:"body"`
	Prev string          `json:"prev"` // 64 hex digits, zeros for the first
	Hash string          `json:"hash"`
	// Sig is the signature over Hash by the key of the newest epoch entry,
	// hex; "" where nothing signs.
	Sig string `json:"sig,omitempty"`
}
