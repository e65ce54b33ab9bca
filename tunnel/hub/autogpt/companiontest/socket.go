//go:build unix

package companiontest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"
)

const maxFrame = 16 << 20

// socket is one WebSocket, from its HELLO on.
type socket struct {
	c       *Companion
	ws      *websocket.Conn
	session string // "" on the control channel
	root    string
	began   time.Time

	granted    []string
	concurrent int
	fileSize   int64
	timeout    time.Duration

	pong    chan struct{}
	writeMu sync.Mutex
	mu      sync.Mutex
	// admitted are requests whose reply has not been sent; running those of
	// them that are being handled; guarded by mu
	admitted, running int
	heard             time.Time // of the last frame; guarded by mu
	revoked           bool      // guarded by mu
	wg                sync.WaitGroup
}

func newSocket(c *Companion, ws *websocket.Conn, session, root string) *socket {
	return &socket{c: c, ws: ws, session: session, root: root, began: time.Now(), heard: time.Now(), pong: make(chan struct{}, 1)}
}

func (s *socket) control() bool { return s.session == "" }

// closing is a close frame that this end sends.
func (s *socket) closing(code int, reason string) error {
	_ = s.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second))
	return fmt.Errorf("closed with %d (%s)", code, reason)
}

// run ends with the socket; what is in flight is cancelled, and says nothing.
func (s *socket) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.wg.Wait()
	defer cancel()
	defer s.ws.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = s.closing(websocket.CloseNormalClosure, "")
		time.AfterFunc(time.Second, func() { s.ws.Close() })
	})
	defer stop()
	s.ws.SetReadLimit(maxFrame)
	s.ws.SetPongHandler(func(string) error {
		select {
		case s.pong <- struct{}{}:
		default:
		}
		return nil
	})
	if err := s.hello(); err != nil {
		return err
	}
	if s.control() {
		s.c.stopRuntimes()
		s.c.browse.reset()
	}
	s.wg.Go(func() { s.beat(ctx, cancel) })
	for {
		data, err := s.read()
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.heard = time.Now()
		s.mu.Unlock()
		f, wrong := readFrame(data)
		if wrong != "" {
			s.c.drop(wrong)
			continue
		}
		switch f.Type {
		case "PING":
			s.send("PONG", f.ID, nil, struct{}{})
		case "SESSION_REVOKED":
			s.mu.Lock()
			s.revoked = true
			s.mu.Unlock()
			if s.control() {
				s.wg.Go(s.c.stopRuntimes)
			}
			return errors.Join(ErrTerminal, s.closing(4428, "revoked"))
		case "HELLO_ACK":
		default:
			s.admit(ctx, f)
		}
	}
}

func (s *socket) read() ([]byte, error) {
	_, data, err := s.ws.ReadMessage()
	if err == nil && s.c.o.Saw != nil {
		s.c.o.Saw(s.session, true, data)
	}
	return data, err
}

func (s *socket) hello() error {
	o := &s.c.o
	capabilities := []string{}
	if o.Shell {
		capabilities = append(capabilities, "shell")
	}
	capabilities = append(capabilities, "files")
	features, coarse, models := []string{}, []string{}, []string{}
	var resolution any
	if o.Desktop {
		capabilities = append(capabilities, "computer_use")
		features = []string{"screenshot.capture", "input.click", "display.info", "permissions.check"}
		coarse = []string{"screenshot", "input", "windows", "apps", "clipboard", "permissions"}
		resolution = []int{1280, 720}
	}
	if o.Model != "" {
		capabilities = append(capabilities, "local_llm")
		models = []string{o.Model}
	}
	var root any
	if s.control() {
		capabilities = append(capabilities, "directory_browse")
	} else {
		root = s.root
	}
	payload := map[string]any{
		"shim_version": "0.3.0", "protocol_version": "1.1", "machine_id": o.MachineID, "display_name": o.Name,
		"platform": "linux", "arch": "x86_64", "screen_resolution": resolution, "capabilities": capabilities, "allowed_root": root,
		"local_llm_models": models, "hardware_devices": []any{}, "computer_use_features": features, "computer_use_features_coarse": coarse,
		"recording_channels": []any{}, "recording_routes": []any{},
	}
	if o.Hello != nil {
		o.Hello(s.session, payload)
	}
	id := uuid.NewString()
	if err := s.send("HELLO", id, nil, payload); err != nil {
		return err
	}
	_ = s.ws.SetReadDeadline(time.Now().Add(o.AckTimeout))
	data, err := s.read()
	if err != nil {
		return err
	}
	_ = s.ws.SetReadDeadline(time.Time{})
	f, wrong := readFrame(data)
	if wrong != "" || f.Type != "HELLO_ACK" {
		s.c.drop("HELLO_ACK: " + f.Type + wrong)
		return errors.New("the first frame was not HELLO_ACK: " + wrong)
	}
	ack := params(f.Payload, struct {
		Session    *string  `json:"session_id"`
		Connection *string  `json:"connection_id"`
		Granted    []string `json:"granted_capabilities"`
		Version    string   `json:"protocol_version"`
		FileSize   int64    `json:"max_file_size_bytes"`
		Timeout    int      `json:"command_timeout_seconds"`
		Concurrent int      `json:"max_concurrent"`
	}{Version: "1.1", FileSize: 10 << 20, Timeout: 30, Concurrent: 4})
	terminal := func(code int, reason string) error {
		s.c.drop("HELLO_ACK: " + reason)
		return errors.Join(ErrTerminal, s.closing(code, reason))
	}
	if f.ID != id {
		return terminal(4400, "HELLO_ACK has another id")
	}
	if s.control() && ack.Session != nil || !s.control() && (ack.Session == nil || *ack.Session != s.session) {
		return terminal(4403, "HELLO_ACK is for another session")
	}
	for _, g := range ack.Granted {
		if !slices.Contains(capabilities, g) {
			return terminal(4400, "a grant that was not advertised")
		}
	}
	major, minor, ok := strings.Cut(ack.Version, ".")
	if !ok || major != "1" || minor == "" {
		return terminal(4426, "version mismatch")
	}
	if s.control() && (ack.Version < "1.1" || !slices.Contains(ack.Granted, "directory_browse") || ack.Connection == nil || *ack.Connection == "") {
		return terminal(4426, "not a control channel of 1.1")
	}
	s.granted = ack.Granted
	s.fileSize = min(o.MaxFileSize, ack.FileSize)
	s.timeout = min(o.CommandTimeout, time.Duration(ack.Timeout)*time.Second)
	s.concurrent = min(o.MaxConcurrent, ack.Concurrent)
	return nil
}

func (s *socket) send(kind, id string, pending *int, payload any) error {
	s.mu.Lock()
	revoked := s.revoked
	s.mu.Unlock()
	if revoked {
		return ErrTerminal
	}
	data, err := json.Marshal(envelope{Type: kind, ID: id, TS: float64(time.Now().UnixMicro()) / 1e6, Version: "1.1", PendingCapacity: pending, Payload: payload})
	if err != nil {
		return err
	}
	if len(data) > maxFrame {
		return s.send("ERROR", id, pending, failf("FILE_TOO_LARGE", "the reply has %d bytes", len(data)))
	}
	if s.c.o.Saw != nil {
		s.c.o.Saw(s.session, false, data)
	}
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	return s.ws.WriteMessage(websocket.TextMessage, data)
}

// admit takes a request, or refuses it at once when there are too many.
func (s *socket) admit(ctx context.Context, f frame) {
	s.mu.Lock()
	if s.admitted >= s.concurrent {
		s.mu.Unlock()
		zero := 0
		s.send("ERROR", f.ID, &zero, &fault{Code: "SHIM_OVERLOADED", Message: "too many requests at once", Details: map[string]any{"max_concurrent": s.concurrent}})
		return
	}
	s.admitted++
	s.mu.Unlock()
	s.wg.Go(func() {
		kind, payload := s.answer(ctx, f)
		s.mu.Lock()
		full := s.admitted >= s.concurrent
		s.admitted--
		pending := max(0, s.concurrent-s.admitted)
		s.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		s.send(kind, f.ID, &pending, payload)
		if full {
			s.status()
		}
	})
}

// answer does what a request asks and gives its terminal reply.
func (s *socket) answer(ctx context.Context, f frame) (string, any) {
	if !s.control() {
		select {
		case s.c.work <- struct{}{}:
			defer func() { <-s.c.work }()
		case <-ctx.Done():
			return "ERROR", failf("INTERNAL_ERROR", "the connection ended")
		}
	}
	s.mu.Lock()
	s.running++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
	if s.c.o.Hold != nil {
		s.c.o.Hold(ctx, f.Type)
	}
	kind, payload, err := s.do(ctx, f)
	var failed *fault
	switch {
	case errors.As(err, &failed):
		return "ERROR", failed
	case err != nil:
		return "ERROR", failf("INTERNAL_ERROR", "%v", err)
	}
	return kind, payload
}

type ack struct {
	OK bool `json:"ok"`
}

func (s *socket) do(ctx context.Context, f frame) (string, any, error) {
	control := map[string]func(json.RawMessage) (string, any, error){
		"DIRECTORY_LIST_REQUEST": s.listDirectory, "ATTACH_SESSION": s.attach, "ACTIVATE_SESSION": s.activate,
		"RESTORE_SESSION": s.restore, "DETACH_SESSION": s.detach,
	}
	if do, ok := control[f.Type]; ok {
		if !s.control() {
			return "", nil, s.notGranted("directory_browse")
		}
		return do(f.Payload)
	}
	if s.control() {
		return "", nil, failf("FEATURE_NOT_SUPPORTED", "not on the control channel")
	}
	needs := "computer_use"
	switch {
	case f.Type == "EXECUTE_COMMAND":
		needs = "shell"
	case strings.HasPrefix(f.Type, "FILE_"):
		needs = "files"
	case f.Type == "LOCAL_LLM_COMPLETION":
		needs = "local_llm"
	}
	if !slices.Contains(s.granted, needs) {
		return "", nil, s.notGranted(needs)
	}
	switch f.Type {
	case "EXECUTE_COMMAND":
		return s.execute(ctx, f.Payload)
	case "FILE_READ":
		return s.fileRead(f.Payload)
	case "FILE_WRITE":
		return s.fileWrite(f.Payload)
	case "FILE_STAT":
		return s.fileStat(f.Payload)
	case "FILE_LIST":
		return s.fileList(f.Payload)
	case "FILE_DELETE":
		return s.fileDelete(f.Payload)
	case "FILE_MOVE":
		return s.fileMove(f.Payload)
	case "LOCAL_LLM_COMPLETION":
		return s.complete(f)
	}
	return s.desktop(f)
}

func (s *socket) notGranted(capability string) error {
	return &fault{Code: "CAPABILITY_NOT_GRANTED", Message: capability + " is not granted",
		Details: map[string]any{"required_capability": capability, "granted_capabilities": s.granted}}
}

type status struct {
	InFlight      int     `json:"in_flight"`
	MaxConcurrent int     `json:"max_concurrent"`
	QueueDepth    int     `json:"queue_depth"`
	AuditLogBytes int     `json:"audit_log_bytes"`
	Uptime        float64 `json:"uptime_seconds"`
}

func (s *socket) status() {
	s.mu.Lock()
	st := status{InFlight: s.running, MaxConcurrent: s.concurrent, QueueDepth: max(0, s.admitted-s.running), Uptime: time.Since(s.began).Seconds()}
	pending := max(0, s.concurrent-s.admitted)
	s.mu.Unlock()
	s.send("STATUS", uuid.NewString(), &pending, st)
}

// beat sends pings and STATUS, and stops a runtime that hears nothing.
func (s *socket) beat(ctx context.Context, cancel context.CancelFunc) {
	o := &s.c.o
	ping, state, idle := time.NewTicker(o.Ping), time.NewTicker(o.Status), time.NewTicker(o.IdleCheck)
	defer ping.Stop()
	defer state.Stop()
	defer idle.Stop()
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ping.C:
			_ = s.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
			if due == nil {
				due = time.After(o.Pong)
			}
		case <-s.pong:
			due = nil
		case <-due:
			s.c.drop("the hub answers no pings")
			s.ws.Close()
			return
		case <-state.C:
			s.status()
		case <-idle.C:
			s.mu.Lock()
			silent := time.Since(s.heard)
			s.mu.Unlock()
			if !s.control() && silent >= o.IdleStop {
				s.c.mu.Lock()
				r := s.c.runtimes[s.session]
				s.c.mu.Unlock()
				if r != nil {
					r.cancel()
				}
				cancel()
				return
			}
		}
	}
}
