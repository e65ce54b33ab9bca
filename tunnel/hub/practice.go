package hub

import (
	"context"
	"errors"
	"io"
	"time"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// practiceFiles are what "Try it safely" writes, in this order.
var practiceFiles = []struct{ name, text string }{
	{"hello.txt", "Hello! A practice run wrote this file on your computer, after you allowed it.\n"},
	{"list.txt", "apples\npears\nbread\n"},
	{"notes.md", "# Practice\n\nThree files were written here. You may delete this folder whenever you like.\n"},
}

// practiceCount goes on for a while, so that there is something to watch and to
// stop.
const practiceCount = "for n in {1..20}; do echo \"$n of 20: watch me, or stop me\"; sleep 1; done"

// Practice is "Try it safely": it asks the person for a session as its own
// principal, writes three practice files, runs two harmless commands, and ends
// the session. It takes the ordinary route from step 1 on. That the person
// stops the second command is part of it; any other error is one sentence for
// the person.
func (h *Hub) Practice(ctx context.Context, machineID string) error {
	m := h.lookup(store.OwnerID, machineID)
	if m == nil {
		return offline()
	}
	b, err := h.openOn(ctx, m, wire.SessionOpen{
		PrincipalID: store.OwnPrincipal, PrincipalName: "Practice", Title: "Try it safely",
		TTLSeconds: int((10 * time.Minute).Seconds()), WaitMS: int(h.o.Wait.Milliseconds()),
	}, store.Sandbox{Principal: store.OwnPrincipal, Template: "practice"})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := h.End(ctx, b, "the practice was over"); err != nil && !errors.Is(err, store.ErrNotFound) {
			h.log.Warn("Practice session could not be ended", "err", err)
		}
	}()
	// Each time in a folder of its own: files of the time before would be asked about.
	folder := "practice/" + time.Now().Format("15.04.05")
	for _, f := range practiceFiles {
		if err := h.practiceWrite(ctx, b, folder+"/"+f.name, f.text); err != nil {
			return err
		}
	}
	if err := h.practiceRun(ctx, b, "ls -l "+folder+" && wc "+folder+"/*"); err != nil {
		return err
	}
	if err := h.practiceRun(ctx, b, practiceCount); err != nil && wire.CodeOf(err) != wire.CodeStopped {
		return err
	}
	return nil
}

func (h *Hub) practiceWrite(ctx context.Context, b store.Sandbox, path, text string) error {
	s, err := h.Do(ctx, b, wire.TypeFileWrite, &wire.FileWrite{SessionID: b.ID, Path: path, WaitMS: int(h.o.Wait.Milliseconds())})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Send(&wire.FileChunk{Data: []byte(text), Last: true}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = s.Recv()
	return err
}

func (h *Hub) practiceRun(ctx context.Context, b store.Sandbox, command string) error {
	s, err := h.Do(ctx, b, wire.TypeProcessStart, &wire.ProcessStart{SessionID: b.ID, Cmd: "/bin/bash",
		Args: []string{"-l", "-c", command}, TimeoutMS: 60_000, WaitMS: int(h.o.Wait.Milliseconds())})
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		msg, err := s.Recv()
		if err != nil {
			return err
		}
		if p, ok := msg.Payload.(*wire.ProcessExited); ok {
			switch {
			case p.TimedOut:
				return wire.Errorf(wire.CodeStopped, "The practice command took too long and was stopped.")
			case p.ExitCode != 0:
				return wire.Errorf(wire.CodeInternal, "The practice command ended with exit code %d.", p.ExitCode)
			}
			return nil
		}
	}
}
