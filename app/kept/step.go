package kept

import (
	"crypto/rand"
	"encoding/json"
	"path"

	"localpc/app/store"
	"localpc/capabilities"
)

func randomBytes(b []byte) { _, _ = rand.Read(b) } // never fails

// step is one change of a request: what was at a name before it, and what is
// there after. Serialised.
type step struct {
	// Rel is the name in the folder; From where it was moved from.
	Rel  string `json:"rel"`
	From string `json:"from,omitempty"`
	// Before is what was there, in Object where it is kept. After is what the
	// request left, once Made.
	Before state `json:"before,omitzero"`
	After  state `json:"after,omitzero"`
	Made   bool  `json:"made,omitempty"`
	// InPlace: the contents were changed and the file stayed, with its other
	// names. ModeOnly: nothing else of a folder was changed.
	InPlace  bool `json:"in_place,omitempty"`
	ModeOnly bool `json:"mode_only,omitempty"`
	// ID is of what was there before.
	ID capabilities.FileID `json:"id,omitzero"`
	// Mark is of what Object is, where that is no copy; see markOf.
	Mark string `json:"mark,omitempty"`
	// Aside is where what was there before is put at the top of the folder, while
	// it is being undone across file systems.
	Aside string `json:"aside,omitempty"`

	n              int
	object, source string
}

func (s *step) row() (store.KeptStep, error) {
	b, err := json.Marshal(s)
	return store.KeptStep{N: s.n, Object: s.object, Source: s.source, Body: string(b)}, err
}

func stepOf(r store.KeptStep) (*step, error) {
	s := &step{n: r.N, object: r.Object, source: r.Source}
	return s, json.Unmarshal([]byte(r.Body), s)
}

func stepsOf(rows []store.KeptStep) ([]*step, error) {
	var out []*step
	for _, r := range rows {
		s, err := stepOf(r)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// folderAbove and base are the two parts of a name in the folder.
func folderAbove(rel string) string { return path.Dir(rel) }
func base(rel string) string        { return path.Base(rel) }
