package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"localpc/app/control"
)

const (
	// maxMessage bounds one message to a hub, which takes less and says so, and
	// maxReply one back.
	maxMessage, maxReply = 64 << 20, 64 << 20
	// mcpLookEvery is how often it is looked whether the program runs by now.
	mcpLookEvery = 2 * time.Second
	// lastWords is how long calls may go on when standard input has ended.
	lastWords = time.Second
	// oldestSpoken and newestSpoken are the versions of the protocol in which the
	// bridge itself says that there is nobody to ask.
	oldestSpoken, newestSpoken = "2024-11-05", "2025-11-25"
)

// bridge carries JSON-RPC messages between lines and a hub's HTTP, as they are.
// It answers itself only where no hub can.
type bridge struct {
	out  io.Writer
	http *http.Client
	// hub gives the address of the hub and the key for it, each time.
	hub func() (address, key string, err error)
	// unreachable is said where it does not answer.
	unreachable string
	ctx         context.Context // of run

	writing sync.Mutex // one line at a time

	mu      sync.Mutex
	version string                        // of the protocol, as agreed at initialize; guarded by mu
	session string                        // the hub's, else one of its own; guarded by mu
	flights map[string]context.CancelFunc // calls under way, by id; guarded by mu
	looking bool                          // for the program to run; guarded by mu
	wg      sync.WaitGroup
}

// rpc is what has to be known of a message.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		RequestID json.RawMessage `json:"requestId"`
		Version   string          `json:"protocolVersion"`
		Meta      map[string]any  `json:"_meta"`
	} `json:"params"`
	Result struct {
		Version string `json:"protocolVersion"`
	} `json:"result"`
}

// run carries messages until in ends.
func (b *bridge) run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.ctx = ctx
	b.flights = map[string]context.CancelFunc{}
	// The newer protocol has no sessions, but a hub tells conversations apart by
	// them: each bridge is one.
	b.session = "b" + rand.Text()
	// A read of standard input cannot be broken off: the process ends with it.
	lines, failed := make(chan []byte), make(chan error, 1)
	go func() { failed <- readLines(ctx, in, lines) }()
	for {
		select {
		case line := <-lines:
			b.take(ctx, line)
		case err := <-failed:
			b.mu.Lock()
			busy := len(b.flights) > 0
			b.mu.Unlock()
			if busy {
				time.AfterFunc(lastWords, func() {
					b.cancelAll(ctx)
					cancel()
				})
			} else {
				cancel()
			}
			b.wg.Wait()
			return err
		case <-ctx.Done():
			b.wg.Wait()
			return nil
		}
	}
}

// readLines reads messages, a line each. One that is too long is empty.
func readLines(ctx context.Context, in io.Reader, lines chan<- []byte) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		var line []byte
		long := false
		for {
			part, err := r.ReadSlice('\n')
			if long = long || len(line)+len(part) > maxMessage; long {
				line = nil
			} else {
				line = append(line, part...)
			}
			if err == nil {
				break
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if line = bytes.TrimSpace(line); len(line) > 0 || long {
				select {
				case lines <- line:
				case <-ctx.Done():
				}
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("read messages: %w", err)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 && !long {
			continue
		}
		select {
		case lines <- line:
		case <-ctx.Done():
			return nil
		}
	}
}

// cancelAll tells the hub that nobody waits for the calls under way any more:
// to older versions of the protocol a connection that ends says nothing.
func (b *bridge) cancelAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	b.mu.Lock()
	var all sync.WaitGroup
	for id := range b.flights {
		line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": json.RawMessage(id)}})
		if err == nil {
			all.Go(func() { b.forward(ctx, line, rpc{Method: "notifications/cancelled"}) })
		}
	}
	b.mu.Unlock()
	all.Wait()
}

// take passes one message on, without waiting for its answer.
func (b *bridge) take(ctx context.Context, line []byte) {
	var m rpc
	if len(line) == 0 {
		b.fail(json.RawMessage("null"), -32600, fmt.Sprintf("The message has more than %d MiB.", maxMessage>>20))
		return
	}
	if line[0] != '[' {
		if err := json.Unmarshal(line, &m); err != nil {
			b.fail(json.RawMessage("null"), -32700, "This is no JSON-RPC message.")
			return
		}
	}
	id := string(m.ID)
	ctx, cancel := context.WithCancel(ctx)
	if id != "" && m.Method != "" {
		b.mu.Lock()
		b.flights[id] = cancel
		b.mu.Unlock()
	}
	b.wg.Go(func() {
		defer cancel()
		b.forward(ctx, line, m)
		b.mu.Lock()
		defer b.mu.Unlock()
		if m.Method != "" {
			delete(b.flights, id)
		}
		if m.Method == "notifications/cancelled" {
			// The hub has heard of it; newer versions of the protocol cancel by
			// closing the connection.
			if cancel := b.flights[string(m.Params.RequestID)]; cancel != nil {
				cancel()
			}
		}
	})
}

func (b *bridge) forward(ctx context.Context, line []byte, m rpc) {
	var refused string
	for {
		address, key, err := b.hub()
		if err != nil {
			b.offline(m, err)
			return
		}
		if key == refused {
			b.complain(m, "This program was disconnected from this computer. Connect it again in Local PC Executor, under Connect a program.")
			return
		}
		resp, err := b.post(ctx, address, key, line, m)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				resp.Body.Close()
			}
			return
		case err != nil:
			b.offline(m, err)
			return
		case resp.StatusCode == http.StatusUnauthorized:
			// It may have been connected again meanwhile, with another key.
			resp.Body.Close()
			refused = key
			continue
		}
		b.pass(ctx, resp, m)
		return
	}
}

func (b *bridge) post(ctx context.Context, address, key string, line []byte, m rpc) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/mcp", bytes.NewReader(line))
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	version, session := b.version, b.session
	b.mu.Unlock()
	if v, ok := m.Params.Meta["io.modelcontextprotocol/protocolVersion"].(string); ok {
		version = v
	}
	h := req.Header
	h.Set("Authorization", "Bearer "+key)
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	if version != "" && m.Method != "initialize" {
		h.Set("Mcp-Protocol-Version", version)
	}
	if session != "" {
		h.Set("Mcp-Session-Id", session)
	}
	if m.Method != "" {
		h.Set("Mcp-Method", m.Method)
		switch m.Method {
		case "tools/call", "prompts/get":
			h.Set("Mcp-Name", headerValue(m.Params.Name))
		case "resources/read":
			h.Set("Mcp-Name", headerValue(m.Params.URI))
		}
	}
	return b.http.Do(req)
}

// headerValue is a name as a header may have it.
func headerValue(s string) string {
	plain := s == strings.TrimSpace(s) && !strings.HasPrefix(s, "=?base64?") && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7E })
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

// pass writes what a hub answered.
func (b *bridge) pass(ctx context.Context, resp *http.Response, m rpc) {
	defer resp.Body.Close()
	if s := resp.Header.Get("Mcp-Session-Id"); s != "" {
		b.mu.Lock()
		b.session = s
		b.mu.Unlock()
	}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	switch {
	case resp.StatusCode == http.StatusOK && kind == "text/event-stream":
		answered, err := b.events(resp.Body, m)
		if !answered && len(m.ID) > 0 && ctx.Err() == nil {
			if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
				err = errors.New("it ended")
			}
			b.complain(m, "The connection to Local PC Executor was lost ("+err.Error()+"). Try again.")
		}
	case kind == "application/json":
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
		if err == nil && bytes.Contains(data, []byte(`"jsonrpc"`)) {
			b.write(data, m)
			return
		}
		b.complain(m, said(data))
	case len(m.ID) > 0 && m.Method != "":
		data, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		b.complain(m, said(data))
	}
}

// said is the sentence of an answer that is no message.
func said(data []byte) string {
	var body struct{ Message string }
	if json.Unmarshal(data, &body) == nil && body.Message != "" {
		return body.Message
	}
	if text := strings.TrimSpace(strings.ToValidUTF8(string(data), "")); text != "" {
		return text
	}
	return "The hub gave no answer."
}

// events writes the messages of a stream of events; answered tells whether the
// call's own answer was among them.
func (b *bridge) events(body io.Reader, m rpc) (answered bool, err error) {
	sc := bufio.NewScanner(body)
	sc.Buffer(make([]byte, 64<<10), maxReply)
	var data []byte
	for sc.Scan() {
		line := sc.Bytes()
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
			continue
		}
		if len(line) == 0 && len(data) > 0 {
			answered = b.write(data, m) || answered
			data = nil
		}
	}
	if len(data) > 0 {
		answered = b.write(data, m) || answered
	}
	return answered, sc.Err()
}

// write writes one message as one line; it tells whether it is the answer to m.
func (b *bridge) write(data []byte, m rpc) bool {
	var line bytes.Buffer
	if err := json.Compact(&line, data); err != nil {
		return false
	}
	var reply rpc
	answers := len(m.ID) > 0 && json.Unmarshal(data, &reply) == nil && reply.Method == "" && bytes.Equal(reply.ID, m.ID)
	if answers && m.Method == "initialize" && reply.Result.Version != "" {
		b.mu.Lock()
		b.version = reply.Result.Version
		b.mu.Unlock()
	}
	line.WriteByte('\n')
	b.writing.Lock()
	defer b.writing.Unlock()
	_, _ = b.out.Write(line.Bytes()) // who does not read any more has gone
	return answers
}

// offline answers in the place of a hub that cannot be asked.
func (b *bridge) offline(m rpc, cause error) {
	say := cause.Error()
	var failed *url.Error
	switch {
	case errors.Is(cause, control.ErrNotRunning):
		say = notRunning
	case errors.As(cause, &failed):
		say = b.unreachable
	}
	switch m.Method {
	case "initialize":
		spoken := m.Params.Version
		if spoken < oldestSpoken || spoken > newestSpoken {
			spoken = newestSpoken
		}
		b.mu.Lock()
		b.version = spoken
		b.mu.Unlock()
		b.reply(m.ID, "result", map[string]any{"protocolVersion": spoken, "capabilities": map[string]any{"tools": map[string]any{"listChanged": true}},
			"serverInfo": map[string]any{"name": "localpc", "title": "Local PC Executor", "version": version}, "instructions": say})
		b.look()
	case "ping":
		b.reply(m.ID, "result", map[string]any{})
	case "server/discover":
		// Of newer versions of the protocol the bridge speaks none itself.
		b.fail(m.ID, -32601, say)
	default:
		b.complain(m, say)
		if m.Method == "tools/list" {
			b.look()
		}
	}
}

// complain answers a call with an error. That of a tool is one that its model
// gets to see.
func (b *bridge) complain(m rpc, say string) {
	switch {
	case len(m.ID) == 0 || m.Method == "":
	case m.Method == "tools/call":
		b.reply(m.ID, "result", map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": say}}})
	default:
		b.fail(m.ID, -32000, say)
	}
}

func (b *bridge) fail(id json.RawMessage, code int, say string) {
	b.reply(id, "error", map[string]any{"code": code, "message": say})
}

func (b *bridge) reply(id json.RawMessage, kind string, v any) {
	if data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, kind: v}); err == nil {
		b.write(data, rpc{})
	}
}

// look waits until there is a hub to ask, and then tells the client, which has
// been given no tools.
func (b *bridge) look() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looking {
		return
	}
	b.looking = true
	b.wg.Go(func() {
		t := time.NewTicker(mcpLookEvery)
		defer t.Stop()
		for {
			select {
			case <-b.ctx.Done():
				return
			case <-t.C:
			}
			if _, _, err := b.hub(); err == nil {
				b.mu.Lock()
				b.looking = false
				b.mu.Unlock()
				b.write([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`), rpc{})
				return
			}
		}
	})
}
