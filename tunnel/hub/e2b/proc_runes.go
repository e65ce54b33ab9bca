package e2b

import (
	"time"
	"unicode/utf8"

	"localpc/tunnel/hub/e2b/process"
)

// heldBack is how long the beginning of a character waits for the rest of it.
const heldBack = 250 * time.Millisecond

// runes keeps the characters of an output in one piece: older SDKs read each
// event by itself, and make of a character that is in two something else. What
// is no text only waits a little. Each client's stream has its own.
type runes struct {
	// The beginnings of characters that wait.
	stdout, stderr, pty []byte
}

// whole gives what is to be told now of an event of output; nil is nothing yet.
func (r *runes) whole(e *process.ProcessEvent) *process.ProcessEvent {
	d := e.GetData()
	if d == nil {
		return e
	}
	held := r.of(d)
	data := bytesOf(d)
	cut := len(data) - partial(data)
	if len(*held) == 0 && cut == len(data) {
		return e // and no copy: others are told the same event
	}
	all := append(*held, data...)
	cut = len(all) - partial(all)
	*held = append([]byte(nil), all[cut:]...)
	if cut == 0 {
		return nil
	}
	return dataOf(d, all[:cut:cut])
}

// waits tells whether anything is held back.
func (r *runes) waits() bool { return len(r.stdout)+len(r.stderr)+len(r.pty) > 0 }

// rest gives what is held back, after which nothing is.
func (r *runes) rest() []*process.ProcessEvent {
	var list []*process.ProcessEvent
	for _, d := range []*process.ProcessEvent_DataEvent{
		{Output: &process.ProcessEvent_DataEvent_Stdout{}}, {Output: &process.ProcessEvent_DataEvent_Stderr{}}, {Output: &process.ProcessEvent_DataEvent_Pty{}},
	} {
		if held := r.of(d); len(*held) > 0 {
			list = append(list, dataOf(d, *held))
			*held = nil
		}
	}
	return list
}

func (r *runes) of(d *process.ProcessEvent_DataEvent) *[]byte {
	switch d.GetOutput().(type) {
	case *process.ProcessEvent_DataEvent_Stderr:
		return &r.stderr
	case *process.ProcessEvent_DataEvent_Pty:
		return &r.pty
	}
	return &r.stdout
}

func bytesOf(d *process.ProcessEvent_DataEvent) []byte {
	switch o := d.GetOutput().(type) {
	case *process.ProcessEvent_DataEvent_Stderr:
		return o.Stderr
	case *process.ProcessEvent_DataEvent_Pty:
		return o.Pty
	}
	return d.GetStdout()
}

// dataOf is an event of the same output as like.
func dataOf(like *process.ProcessEvent_DataEvent, data []byte) *process.ProcessEvent {
	d := &process.ProcessEvent_DataEvent{Output: &process.ProcessEvent_DataEvent_Stdout{Stdout: data}}
	switch like.GetOutput().(type) {
	case *process.ProcessEvent_DataEvent_Stderr:
		d.Output = &process.ProcessEvent_DataEvent_Stderr{Stderr: data}
	case *process.ProcessEvent_DataEvent_Pty:
		d.Output = &process.ProcessEvent_DataEvent_Pty{Pty: data}
	}
	return &process.ProcessEvent{Event: &process.ProcessEvent_Data{Data: d}}
}

// partial is how many bytes at the end of b begin a character and do not end it.
func partial(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
