package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

const (
	// foreground is how long a command may run whose caller names no time and
	// does not put it into the background.
	foreground = 10 * time.Minute
	// maxTimeout is the longest time limit of a command.
	maxTimeout = 24 * time.Hour
	// retained is how long the end of a command can be asked for.
	retained = 30 * time.Minute
	// maxCommands of one program are remembered; the oldest that ended go first.
	maxCommands = 32
	// maxInput is what one send_input sends.
	maxInput = 64 << 10
	// soon is how long a command has to end by itself when it is stopped, and to
	// take its input.
	soon = 5 * time.Second
)

// command is one process that this face started. Its pump, one goroutine, takes
// what the machine sends.
type command struct {
	handle     string
	principal  string
	text       string
	machine    store.Machine
	b          store.Sandbox
	background bool
	takesInput bool
	pid        int
	started    time.Time
	out        *output
	stream     wire.Stream
	sending    chan struct{} // holds one token: who has it may send input
	cancel     context.CancelFunc

	ended   chan struct{}
	exit    *wire.ProcessExited // set before ended is closed
	err     error
	endedAt time.Time
	alone   atomic.Bool // what it had left behind was ended
}

type runCommand struct {
	where
	Command    string            `json:"command" jsonschema:"the command line, run by bash"`
	Cwd        string            `json:"cwd,omitempty" jsonschema:"the working directory; the session's folder by default"`
	Env        map[string]string `json:"env,omitempty" jsonschema:"further environment variables"`
	Timeout    float64           `json:"timeout_s,omitempty" jsonschema:"end it after so many seconds; by default 600 in the foreground, and none in the background, where it ends with your session: an hour after your last call"`
	Background bool              `json:"background,omitempty" jsonschema:"answer as soon as it runs, with a handle for read_output, send_input and stop_command"`
	Input      bool              `json:"input,omitempty" jsonschema:"keep its standard input open for send_input; otherwise it is empty"`
}

func (f *Face) runCommand(ctx context.Context, req *sdk.CallToolRequest, who Principal, in runCommand) *sdk.CallToolResult {
	limit := time.Duration(in.Timeout * float64(time.Second))
	switch {
	case strings.TrimSpace(in.Command) == "":
		return refusal(wire.Errorf(wire.CodeInvalid, "The command is empty."))
	case limit < 0 || limit > maxTimeout:
		return refusal(wire.Errorf(wire.CodeInvalid, "The time limit must be 0 to %d seconds.", int(maxTimeout.Seconds())))
	case limit == 0 && !in.Background:
		limit = foreground
	}
	return f.do(ctx, req, who, "run "+short(in.Command), func(ctx context.Context, j *job) (*sdk.CallToolResult, error) {
		return f.within(ctx, j, req, in.Machine, func(m store.Machine, b store.Sandbox) (*sdk.CallToolResult, error) {
			c, err := f.start(ctx, who, m, b, in, limit)
			if err != nil {
				return nil, err
			}
			if in.Background {
				return c.report(c.out.from(0, 0), fmt.Sprintf("Started on %s with the handle %s. Read what it prints with read_output.", m.Name, c.handle)), nil
			}
			j.says(fmt.Sprintf("Running on %s: %s", m.Name, j.title))
			// A call is answered before its client gives up; the command goes on.
			held := max(time.Until(j.until)-f.o.Wait/20, f.o.Wait/3)
			select {
			case <-c.ended:
				return c.whole()
			case <-time.After(held):
				return c.report(c.out.last(maxText), fmt.Sprintf("Still running. Go on with read_output(handle=%q, since=…); stop_command ends it.", c.handle)), nil
			case <-ctx.Done():
				c.cancel()
				<-c.ended
				return nil, wire.Wrap(context.Cause(ctx), wire.CodeCancelled, "The call was cancelled.")
			}
		})
	})
}

// start asks for a process and waits until it runs. Until then the end of ctx
// cancels it.
func (f *Face) start(ctx context.Context, who Principal, m store.Machine, b store.Sandbox, in runCommand, limit time.Duration) (*command, error) {
	life, cancel := context.WithCancel(f.ctx)
	detach := context.AfterFunc(ctx, cancel)
	s, err := f.o.Backend.Do(life, b, wire.TypeProcessStart, &wire.ProcessStart{SessionID: b.ID, Cmd: "/bin/bash", Args: []string{"-l", "-c", in.Command},
		Env: in.Env, Cwd: in.Cwd, TimeoutMS: int(limit.Milliseconds()), Stdin: in.Input, WaitMS: f.patience()})
	if err != nil {
		detach()
		cancel()
		return nil, err
	}
	msg, err := s.Recv()
	p, ok := msg.Payload.(*wire.ProcessStarted)
	if err == nil && !ok {
		err = wire.Errorf(wire.CodeInternal, "The computer did not say that the command has started.")
	}
	if err == nil && !detach() {
		err = wire.Errorf(wire.CodeCancelled, "The call was cancelled.")
	}
	c := &command{handle: newID("c"), principal: who.ID, text: in.Command, machine: m, b: b, background: in.Background, takesInput: in.Input,
		started: time.Now(), out: newOutput(), stream: s, sending: make(chan struct{}, 1), cancel: cancel, ended: make(chan struct{})}
	if err == nil && !f.spawn(func() { f.pump(c) }) {
		err = stopped()
	}
	if err != nil {
		detach()
		s.Close()
		cancel()
		return nil, err
	}
	c.pid = p.PID
	f.remember(c)
	return c, nil
}

// pump runs until the machine has told of the end.
func (f *Face) pump(c *command) {
	defer c.cancel()
	defer c.stream.Close()
	for c.exit == nil && c.err == nil {
		msg, err := c.stream.Recv()
		switch p := msg.Payload.(type) {
		case *wire.ProcessOutput:
			c.out.write(p.Data)
		case *wire.ProcessExited:
			c.exit = p
		default:
			if c.err = err; err == nil {
				c.err = wire.Errorf(wire.CodeInternal, "The computer told of the command in a way that is not understood.")
			}
		}
	}
	c.endedAt = time.Now()
	c.out.end()
	close(c.ended)
}

func (c *command) running() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// leaves tells whether a command that has ended left processes behind.
func (c *command) leaves() bool { return c.exit != nil && c.exit.Running > 0 && !c.alone.Load() }

// remember keeps a command, and forgets those that ended long ago.
func (f *Face) remember(c *command) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commands[c.handle] = c
	var over []*command
	n := 0
	for _, o := range f.commands {
		if o.principal != c.principal {
			continue
		}
		if n++; !o.running() {
			over = append(over, o)
		}
	}
	slices.SortFunc(over, func(a, b *command) int { return a.endedAt.Compare(b.endedAt) })
	for _, o := range over {
		if n > maxCommands || time.Since(o.endedAt) > retained {
			delete(f.commands, o.handle)
			n--
		}
	}
}

func (f *Face) command(who Principal, handle string) (*command, error) {
	f.mu.Lock()
	c := f.commands[handle]
	f.mu.Unlock()
	if c == nil || c.principal != who.ID {
		return nil, wire.Errorf(wire.CodeInvalid, "There is no command with the handle %q. It may have ended long ago, or the hub was restarted since, which ends commands. list_commands has those there are.", handle)
	}
	return c, nil
}

// how says how a command stands, in words and for a program.
func (c *command) how() (say string, structured map[string]any) {
	structured = map[string]any{"handle": c.handle, "machine": c.machine.Name}
	switch {
	case c.running():
		structured["status"] = "running"
		return "still running", structured
	case c.err != nil:
		say := wrong
		var e *wire.Error
		if errors.As(c.err, &e) {
			say = e.Message
		}
		structured["status"], structured["say"] = "ended", say
		return say, structured
	}
	structured["status"], structured["exit_code"] = "exited", c.exit.ExitCode
	say = fmt.Sprintf("exit code %d", c.exit.ExitCode)
	if c.exit.Signal != "" {
		structured["signal"] = c.exit.Signal
		say = "ended by a signal: " + c.exit.Signal
	}
	if c.exit.TimedOut {
		structured["timed_out"] = true
		say = "stopped at its time limit"
	}
	if c.exit.Truncated {
		say += "; a part of the output was left out"
	}
	if c.leaves() {
		structured["children"] = c.exit.Running
		say += fmt.Sprintf("; %d processes that it started still run", c.exit.Running)
	}
	return say, structured
}

// report is a result with a piece of the output; note is said after it.
func (c *command) report(p piece, note string) *sdk.CallToolResult {
	say, structured := c.how()
	if note == "" {
		note = say
	}
	structured["output"], structured["next"] = p.text, p.next
	if p.missing > 0 {
		structured["missing_bytes"] = p.missing
		note += fmt.Sprintf("; %s before this are not kept any more", inBytes(p.missing))
	}
	if p.more {
		note += fmt.Sprintf("; there is more: since=%d", p.next)
	} else if c.running() {
		note += fmt.Sprintf("; next: since=%d", p.next)
	}
	structured["note"] = note
	return c.result(p.text, note, structured)
}

// whole is the result of a command that ran to its end in the foreground.
func (c *command) whole() (*sdk.CallToolResult, error) {
	if c.err != nil {
		return nil, c.err
	}
	s, cut := c.out.all(maxText)
	say, structured := c.how()
	structured["output"] = s
	if cut {
		structured["truncated"] = true
		say += fmt.Sprintf("; the middle of the output was left out: read_output(handle=%q, since=0) has it, as far as it is kept", c.handle)
	}
	structured["note"] = say
	return c.result(s, say, structured), nil
}

func (c *command) result(out, note string, structured map[string]any) *sdk.CallToolResult {
	if out != "" && !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	return &sdk.CallToolResult{Content: []sdk.Content{text(out + "[" + note + "]")}, StructuredContent: structured}
}
