package machine

import (
	"context"
	"fmt"
	"strings"

	"localpc/consent"
)

// maxInRecord bounds one text in the record, bytes; of a longer one its head
// is there, and the whole of it is kept as an output is.
const maxInRecord = 16 << 10

// clipped is the recorder of step 4: the record, with what is very long put
// aside, so that a program can't fill the disk with one request after another.
type clipped struct{ m *Machine }

func (c clipped) Decided(ctx context.Context, r consent.Request, d consent.Decision) error {
	var err error
	whole := ""
	keep := func(s string) string {
		if len(s) <= maxInRecord || err != nil {
			return s
		}
		var name string
		if name, err = c.m.o.Store.KeepOutput([]byte(s)); err != nil {
			return s
		}
		head := strings.ToValidUTF8(s[:maxInRecord], "")
		whole = name
		return fmt.Sprintf("%s\n… %d bytes more", head, len(s)-len(head))
	}
	r.Exact = keep(r.Exact)
	r.Whole = whole
	r.Rule.Exact, r.Rule.Env = keep(r.Rule.Exact), keep(r.Rule.Env)
	if n := len(strings.Join(r.Details, "")); n > maxInRecord {
		r.Details = []string{keep(strings.Join(r.Details, "\n"))}
	}
	if err != nil {
		return fmt.Errorf("keep a long text: %w", err)
	}
	return c.m.o.Record.Decided(ctx, r, d)
}
