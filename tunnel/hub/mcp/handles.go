package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/tunnel/wire"
)

type readOutput struct {
	Handle string  `json:"handle" jsonschema:"of the command, from run_command or list_commands"`
	Since  *int64  `json:"since,omitempty" jsonschema:"read from here: the next of the last answer, or 0 for the beginning; by default what came last"`
	Wait   float64 `json:"wait_s,omitempty" jsonschema:"wait up to so many seconds (at most 45) for new output or the end (default 0)"`
}

func (f *Face) readOutput(ctx context.Context, _ *sdk.CallToolRequest, who Principal, in readOutput) *sdk.CallToolResult {
	c, err := f.command(who, in.Handle)
	if err != nil {
		return refusal(err)
	}
	f.looksAfter(ctx, c)
	wait := min(time.Duration(in.Wait*float64(time.Second)), maxWaitAgain, f.o.Wait)
	since := int64(-1)
	if in.Since != nil {
		since = max(0, *in.Since)
	}
	_, seen, _ := c.out.next() // what is new comes after it
	if since >= 0 {
		seen = since
	}
	timer := time.NewTimer(max(wait, 0))
	defer timer.Stop()
	for waiting := wait > 0; waiting; {
		more, _, ended := c.out.next()
		if ended || c.out.from(seen, 64).text != "" {
			break
		}
		select {
		case <-more:
		case <-timer.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		case <-f.ctx.Done():
			return refusal(stopped())
		}
	}
	if since < 0 {
		return c.report(c.out.last(maxText), "")
	}
	return c.report(c.out.from(since, maxText), "")
}

type sendInput struct {
	Handle string `json:"handle" jsonschema:"of a command that was started with input"`
	Text   string `json:"text,omitempty" jsonschema:"what it reads; a line ends with \\n"`
	End    bool   `json:"end,omitempty" jsonschema:"close its standard input after that"`
}

func (f *Face) sendInput(ctx context.Context, _ *sdk.CallToolRequest, who Principal, in sendInput) *sdk.CallToolResult {
	c, err := f.command(who, in.Handle)
	switch {
	case err != nil:
		return refusal(err)
	case !c.takesInput:
		return refusal(wire.Errorf(wire.CodeInvalid, "This command was started without input. Start it again with input set to true."))
	case len(in.Text) > maxInput:
		return refusal(wire.Errorf(wire.CodeTooLarge, "The input has %d bytes; at most %d can be sent at once.", len(in.Text), maxInput))
	case in.Text == "" && !in.End:
		return refusal(wire.Errorf(wire.CodeInvalid, "There is nothing to send: text is empty."))
	}
	f.looksAfter(ctx, c)
	full := wire.Errorf(wire.CodeOverloaded, "The command does not read its input at the moment; try again later.")
	timer := time.NewTimer(soon)
	defer timer.Stop()
	select {
	case c.sending <- struct{}{}:
	case <-timer.C:
		return refusal(full)
	case <-ctx.Done():
		return refusal(wire.Errorf(wire.CodeCancelled, "The call was cancelled."))
	}
	sent := make(chan error, 1)
	// Whatever ends the command lets go of it.
	if !f.spawn(func() {
		sent <- c.stream.Send(&wire.ProcessInput{Data: []byte(in.Text), End: in.End})
		<-c.sending
	}) {
		<-c.sending
		return refusal(stopped())
	}
	select {
	case err := <-sent:
		if err != nil {
			say, _ := c.how()
			return refusal(wire.Errorf(wire.CodeInvalid, "The command takes no input any more (%s).", say))
		}
		return said("Sent.", map[string]any{"status": "sent", "bytes": len(in.Text)})
	case <-time.After(soon):
		return refusal(wire.Errorf(wire.CodeOverloaded, "The command does not read its input at the moment. What was sent waits for it; do not send it again."))
	}
}

type handle struct {
	Handle string `json:"handle" jsonschema:"of the command, from run_command or list_commands"`
}

func (f *Face) stopCommand(ctx context.Context, _ *sdk.CallToolRequest, who Principal, in handle) *sdk.CallToolResult {
	c, err := f.command(who, in.Handle)
	if err != nil {
		return refusal(err)
	}
	for _, signal := range []string{"SIGTERM", "SIGKILL"} {
		if !c.running() {
			break
		}
		if _, err := f.unary(ctx, c.b, wire.TypeProcessSignal, &wire.ProcessSignal{SessionID: c.b.ID, PID: c.pid, Signal: signal}); err != nil && c.running() {
			return f.failed(ctx, err)
		}
		select {
		case <-c.ended:
		case <-time.After(soon):
		case <-ctx.Done():
			return refusal(wire.Errorf(wire.CodeCancelled, "The call was cancelled."))
		}
	}
	if !c.running() && c.leaves() {
		if err := f.endLeft(ctx, c); err != nil {
			return f.failed(ctx, err)
		}
	}
	return c.report(c.out.last(4<<10), "")
}

// endLeft ends the processes that a command started and left behind when it
// ended.
func (f *Face) endLeft(ctx context.Context, c *command) error {
	for _, signal := range []string{"SIGTERM", "SIGKILL"} {
		_, err := f.unary(ctx, c.b, wire.TypeProcessSignal, &wire.ProcessSignal{SessionID: c.b.ID, PID: c.pid, Signal: signal})
		switch wire.CodeOf(err) {
		case "":
		case wire.CodePathNotFound, wire.CodeSessionNotOpen:
			c.alone.Store(true)
			return nil
		default:
			return err
		}
		if signal == "SIGKILL" {
			break
		}
		select {
		case <-time.After(soon / 5):
		case <-ctx.Done():
			return wire.Errorf(wire.CodeCancelled, "The call was cancelled.")
		}
	}
	c.alone.Store(true)
	return nil
}

func (f *Face) listCommands(_ context.Context, _ *sdk.CallToolRequest, who Principal, in where) *sdk.CallToolResult {
	f.mu.Lock()
	var list []*command
	for _, c := range f.commands {
		if c.principal == who.ID && (in.Machine == "" || c.machine.ID == in.Machine || strings.EqualFold(c.machine.Name, in.Machine)) {
			list = append(list, c)
		}
	}
	f.mu.Unlock()
	slices.SortFunc(list, func(a, b *command) int { return a.started.Compare(b.started) })
	var b strings.Builder
	rows := []map[string]any{}
	for _, c := range list {
		say, row := c.how()
		row["command"], row["started"] = c.text, c.started.UTC().Format(time.RFC3339)
		rows = append(rows, row)
		fmt.Fprintf(&b, "%s  %s  on %s: %s\n", c.handle, say, c.machine.Name, short(c.text))
	}
	if len(list) == 0 {
		b.WriteString("No commands.")
	}
	return &sdk.CallToolResult{Content: []sdk.Content{text(b.String())}, StructuredContent: map[string]any{"commands": rows}}
}
