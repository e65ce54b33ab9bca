package autogpt

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// List is an array that is written as [] when it is empty, never as null.
type List[T any] []T

func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return marshal([]T(l))
}

// UnmarshalJSON refuses null as a member; encoding/json would make it "" or {}.
func (l *List[T]) UnmarshalJSON(raw []byte) error {
	if isNull(raw) {
		return nil
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return shapeError("an array is needed")
	}
	out := make(List[T], len(all))
	for i, one := range all {
		if isNull(one) {
			return shapeError("an array must not hold null")
		}
		if err := json.Unmarshal(one, &out[i]); err != nil {
			return err
		}
	}
	*l = out
	return nil
}

// Map is an object that is written as {} when it is empty, never as null.
type Map map[string]string

func (m Map) MarshalJSON() ([]byte, error) {
	if m == nil {
		return []byte("{}"), nil
	}
	return marshal(map[string]string(m))
}

// Pair is [x,y] or [w,h].
type Pair [2]int

// Rect is [x1,y1,x2,y2].
type Rect [4]int

type shapeError string

func (e shapeError) Error() string { return string(e) }

func (p *Pair) UnmarshalJSON(raw []byte) error { return exactly(raw, p[:]) }
func (r *Rect) UnmarshalJSON(raw []byte) error { return exactly(raw, r[:]) }

// exactly reads an array of just the length of to; encoding/json would fill up
// or cut.
func exactly(raw []byte, to []int) error {
	if isNull(raw) {
		return nil
	}
	var all []*int
	if err := json.Unmarshal(raw, &all); err != nil || len(all) != len(to) {
		return shapeError(fmt.Sprintf("an array of exactly %d integers is needed", len(to)))
	}
	for i, n := range all {
		if n == nil {
			return shapeError(fmt.Sprintf("an array of exactly %d integers is needed", len(to)))
		}
		to[i] = *n
	}
	return nil
}

// Resolution is [w,h] in HELLO, where a malformed value counts as null.
type Resolution [2]int

func (r *Resolution) UnmarshalJSON(raw []byte) error {
	if err := exactly(raw, r[:]); err != nil || r[0] < 1 || r[1] < 1 {
		*r = Resolution{}
	}
	return nil
}

func isNull(raw []byte) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }

// Empty is a payload without fields.
type Empty struct{}

func (*Empty) Validate() error { return nil }

// Reserved is the payload of a message that is named and not spoken.
type Reserved struct{ Fields map[string]json.RawMessage }

func (*Reserved) Validate() error { return nil }

func (r *Reserved) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, &r.Fields) }
func (r Reserved) MarshalJSON() ([]byte, error) {
	if r.Fields == nil {
		return []byte("{}"), nil
	}
	return marshal(r.Fields)
}
