package computer

import (
	"context"
	"fmt"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/computer/hands"
	"localpc/consent"
	"localpc/tunnel/wire"
)

const (
	// pasteFrom is from how many characters a text is pasted where that is asked
	// for; a shorter one is typed.
	pasteFrom = 200
	// pasteTakes is how long a program has to take what is pasted before the
	// clipboard is put back.
	pasteTakes = 300 * time.Millisecond
	// clipRule is the exact text of the one permission to write.
	clipRule = "write to the clipboard"
)

// clipboard wants it allowed, and of text.
func (c *Computer) clipboard(ctx context.Context, format string) error {
	if c.terms().Clipboard == hands.ClipOff {
		return wire.Errorf(wire.CodeNotSupported, "The clipboard is switched off in Settings on this computer.").With(map[string]any{"feature": hands.AbilityClipboard})
	}
	if format == "image" {
		return wire.Errorf(wire.CodeNotSupported, "Only text can be read from the clipboard or put there, not pictures.").With(map[string]any{"feature": "clipboard_image"})
	}
	_, err := c.able(ctx, hands.AbilityClipboard)
	return err
}

func concealed(reason, sentence string, age time.Duration) error {
	details := map[string]any{"reason": reason}
	if age > 0 {
		details["writeback_age_seconds"] = int(age.Seconds())
	}
	return wire.Errorf(wire.CodeConcealed, "%s", sentence).With(details)
}

// own is what the session put on the clipboard within hands.ClipOwnFor; the
// error says that there is nothing.
func (s *session) own() (clip, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	age := time.Since(s.clip.at)
	switch {
	case s.clip.at.IsZero():
		return clip{}, concealed("writeback_only", "Only what was put on the clipboard in this session can be read, and nothing was. The person can allow more in Settings.", 0)
	case consent.Over(s.clip.at, time.Now(), hands.ClipOwnFor):
		return clip{}, concealed("writeback_only", "What this session put on the clipboard can be read for 30 seconds only.", age)
	}
	return s.clip, nil
}

// readClip reads the clipboard: what the session put there itself, or, where
// Settings allows it, anything, asked each time.
func (c *Computer) readClip(ctx context.Context, s *session, p *wire.ClipRead) (job, error) {
	if err := c.clipboard(ctx, p.Format); err != nil {
		return job{}, err
	}
	own := c.terms().Clipboard != hands.ClipAll
	d := capabilities.Description{Action: actRead, Title: "Read the clipboard", Sentence: "%s wants to read what you have copied.", Exact: "read the clipboard",
		Details: []string{"What is on the clipboard when you allow it is sent. What a password manager has marked as a secret is not."},
		Effects: []consent.Effect{{Kind: consent.EffectClipboard, Text: "reads the clipboard"}}, Risk: consent.RiskNormal,
		Payload: []any{"clipboard", own}}
	d.Rule.Exact = d.Exact
	if own {
		if _, err := s.own(); err != nil {
			return job{}, err
		}
		d.Details = []string{"Only what it put there itself is sent."}
		d.Effects = []consent.Effect{{Kind: consent.EffectClipboard, Text: "reads back what it put on the clipboard itself", Own: true}}
	}
	return job{d: d, run: func(ctx context.Context, g consent.Grant) (capabilities.Result, error) {
		ctx, done, err := c.touch(ctx, s, use{once: true}, waitOf(p.WaitMS))
		if err != nil {
			return capabilities.Result{}, err
		}
		defer done()
		got, err := c.o.Hands.ReadClipboard(ctx, wire.MaxClip)
		if wire.CodeOf(err) == wire.CodeConcealed {
			return capabilities.Result{}, concealed("concealed_type", "What is on the clipboard was marked as a secret by its program, so it is not read.", 0)
		}
		if err != nil {
			return capabilities.Result{}, err
		}
		if own {
			mine, err := s.own()
			if err != nil {
				return capabilities.Result{}, err
			}
			if !got.Owned || got.Text != mine.text {
				return capabilities.Result{}, concealed("writeback_overwritten", "Something else has been copied since, and only what this session put on the clipboard can be read.", time.Since(mine.at))
			}
		}
		n := int64(len(got.Text))
		return capabilities.Result{Type: wire.TypeClipReadResponse, Payload: &wire.ClipReadResponse{Format: "text", Content: got.Text, SizeBytes: len(got.Text)},
			Sent: n, Output: []byte(got.Text), Outcome: consent.Bytes(n) + " read"}, nil
	}}, nil
}

// writeClip puts text on the clipboard.
func (c *Computer) writeClip(ctx context.Context, s *session, p *wire.ClipWrite) (job, error) {
	if err := c.clipboard(ctx, p.Format); err != nil {
		return job{}, err
	}
	d := capabilities.Description{Action: actWrite, Title: fmt.Sprintf("Copy %q", short(p.Content)), Sentence: "%s wants to put text on your clipboard.", Exact: p.Content,
		Details: []string{"What you have copied before is replaced."},
		Effects: []consent.Effect{{Kind: consent.EffectClipboard, Text: "replaces what you have copied"}}, Risk: consent.RiskNormal,
		Payload: []any{"clipboard write", p.Content}, Rule: capabilities.RuleParts{Exact: clipRule}, Scopes: []consent.Scope{consent.Session}}
	if d.Exact == "" {
		d.Exact = "(nothing: the clipboard is emptied)"
	}
	return job{d: d, run: func(ctx context.Context, g consent.Grant) (capabilities.Result, error) {
		ctx, done, err := c.touch(ctx, s, use{once: true}, c.o.thaw)
		if err != nil {
			return capabilities.Result{}, err
		}
		defer done()
		if g.Choice().Scope == consent.Session || g.By() == "policy" {
			c.mu.Lock()
			s.pastes = true
			c.mu.Unlock()
		}
		if err := c.copies(ctx, s, p.Content); err != nil {
			return capabilities.Result{}, err
		}
		n := int64(len(p.Content))
		return capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Received: n, Outcome: consent.Bytes(n) + " copied"}, nil
	}}, nil
}

// copies puts text on the clipboard for s.
func (c *Computer) copies(ctx context.Context, s *session, text string) error {
	if err := c.o.Hands.WriteClipboard(ctx, text); err != nil {
		return err
	}
	c.mu.Lock()
	s.clip = clip{text: text, at: time.Now()}
	c.mu.Unlock()
	return nil
}

// paste types a long text through the clipboard, where the session may write to
// it without being asked. Where what was there is to be
// put back, and can't be (a picture, a secret), it is typed instead, so that
// nothing of the person's is lost.
func (c *Computer) paste(ctx context.Context, s *session, p *wire.InputAction, a hands.Action) error {
	var before hands.Clip
	if _, err := c.able(ctx, hands.AbilityClipboard); err != nil {
		return c.o.Hands.Act(ctx, a)
	}
	if p.PreserveClipboard {
		var err error
		if before, err = c.o.Hands.ReadClipboard(ctx, wire.MaxClip); err != nil {
			return c.o.Hands.Act(ctx, a)
		}
	}
	if err := c.copies(ctx, s, p.Text); err != nil {
		return err
	}
	a.Kind, a.Text, a.Chord, a.Repeat = hands.Key, "", "ctrl+v", 1
	err := c.o.Hands.Act(ctx, a)
	if !p.PreserveClipboard {
		return err
	}
	if err == nil {
		select {
		case <-time.After(pasteTakes):
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	// However it ended, the person's text comes back, unless somebody has copied
	// something else meanwhile.
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), handsWithin)
	defer cancel()
	if now, rerr := c.o.Hands.ReadClipboard(back, wire.MaxClip); rerr != nil || !now.Owned || now.Text != p.Text {
		return err
	}
	if werr := c.o.Hands.WriteClipboard(back, before.Text); werr != nil {
		c.o.Log.Error("The clipboard could not be put back", "err", werr)
	}
	c.mu.Lock()
	s.clip = clip{}
	c.mu.Unlock()
	return err
}
