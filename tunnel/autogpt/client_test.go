package autogpt

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

func TestHelloOnBothConnections(t *testing.T) {
	h := newHub(t)
	_, control, data := working(t, h, nil)
	var hello msg.Hello
	control.hello.into(t, &hello)
	if hello.AllowedRoot != nil || hello.Protocol != "1.1" || strings.Join(hello.Capabilities, " ") != "files shell directory_browse" {
		t.Errorf("control: %s", control.hello.Payload)
	}
	if control.token != "Bearer agpt_xt_1" || data.token != control.token || data.session != chat {
		t.Errorf("tokens %q and %q, session %q", control.token, data.token, data.session)
	}
	hello = msg.Hello{}
	data.hello.into(t, &hello)
	if hello.AllowedRoot == nil || *hello.AllowedRoot != root || strings.Join(hello.Capabilities, " ") != "files shell" {
		t.Errorf("data: %s", data.hello.Payload)
	}
}

// The checks of HELLO_ACK, in their order, with the code the machine closes
// with, and whether it comes back.
func TestHelloAckChecks(t *testing.T) {
	for _, c := range []struct {
		name   string
		change object
		data   bool
		code   int // 0: it is taken
		back   bool
		err    error
	}{
		{"as it should be", object{}, false, 0, false, nil},
		{"empty session on control", object{"session_id": ""}, false, 0, false, nil},
		{"no optional field", object{"max_file_size_bytes": nil, "command_timeout_seconds": nil, "max_concurrent": nil, "protocol_version": nil}, false, 0, false, nil},
		{"fewer grants", object{"granted_capabilities": []string{"directory_browse"}}, false, 0, false, nil},
		{"newer minor", object{"protocol_version": "1.9"}, false, 0, false, nil},
		{"another id", object{"id": "other"}, false, 4400, false, ErrGreeting},
		{"another id comes before another session", object{"id": "other", "session_id": "x"}, false, 4400, false, ErrGreeting},
		{"session on control", object{"session_id": "x"}, false, 4403, false, ErrGreeting},
		{"session comes before grants", object{"session_id": "x", "granted_capabilities": []string{"hardware_usb"}}, false, 4403, false, ErrGreeting},
		{"grant not advertised", object{"granted_capabilities": []string{"files", "computer_use", "directory_browse"}}, false, 4400, false, ErrGreeting},
		{"grant comes before version", object{"granted_capabilities": []string{"recording"}, "protocol_version": "2.0"}, false, 4400, false, ErrGreeting},
		{"another major", object{"protocol_version": "2.0"}, false, 4426, false, tunnel.ErrVersion},
		{"malformed version", object{"protocol_version": "new"}, false, 4426, false, tunnel.ErrVersion},
		{"older minor on control", object{"protocol_version": "1.0"}, false, 4426, false, tunnel.ErrVersion},
		{"browsing not granted", object{"granted_capabilities": []string{"files"}}, false, 4426, false, tunnel.ErrVersion},
		{"no connection id", object{"connection_id": nil}, false, 4426, false, tunnel.ErrVersion},
		{"limit of nothing", object{"max_concurrent": 0}, false, websocket.CloseAbnormalClosure, true, nil},
		{"no grants", object{"granted_capabilities": nil}, false, websocket.CloseAbnormalClosure, true, nil},

		{"data as it should be", object{}, true, 0, false, nil},
		{"data with an older minor", object{"protocol_version": "1.0"}, true, 0, false, nil},
		{"data without grants", object{"granted_capabilities": []string{}}, true, 0, false, nil},
		{"data with another id", object{"id": "other"}, true, 4400, false, nil},
		{"data with no session", object{"session_id": nil}, true, 4403, false, nil},
		{"data with another session", object{"session_id": "x"}, true, 4403, false, nil},
		{"data with browsing granted", object{"granted_capabilities": []string{"directory_browse"}}, true, 4400, false, nil},
		{"data with another major", object{"protocol_version": "2.0"}, true, 4426, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHub(t)
			var m *machine
			var p, control *peer
			if c.data {
				m, control = online(t, h, nil)
				control.call("RESTORE_SESSION", object{"session_id": chat, "root_grant": grant})
				p = take(t, h.data, "data connection")
			} else {
				m = runMachine(t, h, nil)
				p = take(t, h.control, "control connection")
			}
			p.greet(c.change)
			if c.code == 0 {
				p.ask("PING", "p1", object{})
				if f := p.next(); f.Type != "PONG" || f.Capacity != nil {
					t.Errorf("PING is answered with %+v", f)
				}
				return
			}
			if code := p.closes(); code != c.code {
				t.Errorf("closed with %d, want %d", code, c.code)
			}
			switch {
			case c.back:
				take(t, h.control, "next connection")
			case c.data:
				// Only this chat has ended.
				within(t, "the chat's end", func() bool { return !m.c.live(chat) })
				control.ask("PING", "p1", object{})
				control.next()
				if len(h.data) != 0 {
					t.Error("the chat came back")
				}
			default:
				if err := take(t, m.ended, "end"); !errors.Is(err, c.err) {
					t.Errorf("ended with %v, want %v", err, c.err)
				}
				if h.dials.Load() != 1 {
					t.Error("it dialled again")
				}
			}
		})
	}
}

func TestNoHelloAck(t *testing.T) {
	for name, answer := range map[string]func(p *peer){
		"silence": func(*peer) {},
		"a late answer": func(p *peer) {
			time.Sleep(600 * time.Millisecond)
			_ = p.ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"HELLO_ACK","id":"`+p.hello.ID+`","ts":1,"payload":{"connection_id":"c","granted_capabilities":["directory_browse"]}}`))
		},
		"another frame":    func(p *peer) { p.send("PING", "x", object{}) },
		"garbage":          func(p *peer) { _ = p.ws.WriteMessage(websocket.TextMessage, []byte("hello")) },
		"closed with 4408": func(p *peer) { p.close(4408) },
		"closed with 4400": func(p *peer) { p.close(4400) },
		"closed with 4500": func(p *peer) { p.close(4500) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			m := runMachine(t, h, func(o *Options) { o.Timings.Hello = 500 * time.Millisecond })
			p := take(t, h.control, "control connection")
			var err error
			if p.hello, err = p.read(); err != nil {
				t.Fatal(err)
			}
			answer(p)
			take(t, h.control, "next connection").greet(nil)
			m.waitState(tunnel.Online)
		})
	}
}

// What a close code after the handshake means for a control connection.
func TestCloseCodes(t *testing.T) {
	for _, c := range []struct {
		code int
		err  error // nil: it comes back
	}{
		{1000, nil}, {1001, nil}, {1011, nil}, {4400, nil}, {4408, nil}, {4429, nil}, {4500, nil}, {4999, nil},
		{4403, tunnel.ErrForbidden}, {4426, tunnel.ErrVersion}, {4427, tunnel.ErrReplaced}, {4428, tunnel.ErrRevoked},
	} {
		for _, data := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d data %v", c.code, data), func(t *testing.T) {
				h := newHub(t)
				if data {
					m, control, p := working(t, h, nil)
					p.close(c.code)
					if c.err == nil {
						take(t, h.data, "next connection").greet(nil)
						return
					}
					within(t, "the chat's end", func() bool { return !m.c.live(chat) })
					control.call("PING", object{})
					if len(h.data) != 0 {
						t.Error("the chat came back")
					}
					return
				}
				m, p, d := working(t, h, nil)
				p.close(c.code)
				if code := d.closes(); code != 1000 {
					t.Errorf("the chat's connection closed with %d", code)
				}
				if c.err == nil {
					take(t, h.control, "next connection").greet(nil)
					return
				}
				if err := take(t, m.ended, "end"); !errors.Is(err, c.err) {
					t.Errorf("ended with %v, want %v", err, c.err)
				}
				var last tunnel.State
				for len(m.states) > 0 {
					last = <-m.states
				}
				if last.Phase != tunnel.Offline || last.Reason == "" || !last.Retry.IsZero() {
					t.Errorf("the last state is %+v", last)
				}
			})
		}
	}
}

func TestRevocation(t *testing.T) {
	for reason, want := range map[string]error{"another_shim_connected": tunnel.ErrReplaced, "user_revoked": tunnel.ErrRevoked,
		"platform_shutdown": tunnel.ErrRevoked, "something_new": tunnel.ErrRevoked} {
		t.Run(reason, func(t *testing.T) {
			h := newHub(t)
			m, control, data := working(t, h, nil)
			control.send("SESSION_REVOKED", "r1", object{"reason": reason, "new_shim_machine_id": nil})
			// Requests after it are not answered.
			control.send("DETACH_SESSION", "late", object{"session_id": chat})
			if code := control.closes(); code != 4428 {
				t.Errorf("closed with %d", code)
			}
			if err := take(t, m.ended, "end"); !errors.Is(err, want) {
				t.Errorf("ended with %v", err)
			}
			if code := data.closes(); code != 1000 {
				t.Errorf("the chat's connection closed with %d", code)
			}
			if m.folders.detached != nil {
				t.Error("a request after the revocation was done")
			}
		})
	}
	t.Run("of one chat", func(t *testing.T) {
		h := newHub(t)
		m, control, data := working(t, h, nil)
		data.send("SESSION_REVOKED", "r1", object{"reason": "another_shim_connected"})
		if code := data.closes(); code != 4428 {
			t.Errorf("closed with %d", code)
		}
		within(t, "the chat's end", func() bool { return !m.c.live(chat) })
		if f := control.call("ACTIVATE_SESSION", object{"session_id": chat, "revision": 1}); f.Type != "SESSION_ACTIVATED" {
			t.Errorf("the control connection answers %s", f.Payload)
		}
		take(t, h.data, "data connection")
	})
}

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		name    string
		good    string // what the hub takes; "": nothing
		closes  bool   // with 4401 after the handshake instead of answering 401
		refresh func() error
		dials   int32
		end     error // nil: online
	}{
		{"refreshed once", "agpt_xt_2", false, func() error { return nil }, 2, nil},
		{"ended at its expiry", "agpt_xt_2", true, func() error { return nil }, 2, nil},
		{"refused twice", "", false, func() error { return nil }, 2, tunnel.ErrUnauthorized},
		{"no other token", "", false, func() error { return fmt.Errorf("signed out: %w", tunnel.ErrUnauthorized) }, 1, tunnel.ErrUnauthorized},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHub(t)
			var token, refreshes atomic.Int32
			token.Store(1)
			h.refuse = func(r *http.Request) int {
				if !c.closes && r.Header.Get("Authorization") != "Bearer "+c.good {
					return 401
				}
				return 0
			}
			m := runMachine(t, h, func(o *Options) {
				o.Token = func(context.Context) (string, error) { return fmt.Sprintf("agpt_xt_%d", token.Load()), nil }
				o.Rejected = func(_ context.Context, old string) error {
					refreshes.Add(1)
					if old != "agpt_xt_1" {
						t.Errorf("rejected: %q", old)
					}
					token.Store(2)
					return c.refresh()
				}
			})
			if c.closes {
				p := take(t, h.control, "control connection")
				p.greet(nil)
				p.close(4401)
			}
			if c.end != nil {
				if err := take(t, m.ended, "end"); !errors.Is(err, c.end) {
					t.Errorf("ended with %v", err)
				}
			} else {
				p := take(t, h.control, "control connection")
				p.greet(nil)
				if p.token != "Bearer agpt_xt_2" {
					t.Errorf("dialled with %q", p.token)
				}
			}
			if h.dials.Load() != c.dials || refreshes.Load() != 1 {
				t.Errorf("%d dials, %d refreshes", h.dials.Load(), refreshes.Load())
			}
		})
	}
}

func TestUpgradeRefused(t *testing.T) {
	t.Run("403 on control", func(t *testing.T) {
		h := newHub(t)
		h.refuse = func(*http.Request) int { return 403 }
		m := runMachine(t, h, func(o *Options) {
			o.Rejected = func(context.Context, string) error { t.Error("a token was refreshed"); return nil }
		})
		err := take(t, m.ended, "end")
		if !errors.Is(err, ErrNotEnabled) || !errors.Is(err, tunnel.ErrForbidden) || h.dials.Load() != 1 {
			t.Errorf("ended with %v after %d dials", err, h.dials.Load())
		}
		if s := m.waitState(tunnel.Offline); !strings.Contains(s.Reason, "switched local computers on") {
			t.Errorf("the person reads %q", s.Reason)
		}
	})
	t.Run("403 on data ends the chat alone", func(t *testing.T) {
		h := newHub(t)
		h.refuse = func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, chat) {
				return 403
			}
			return 0
		}
		m, control := online(t, h, nil)
		control.call("RESTORE_SESSION", object{"session_id": chat, "root_grant": grant})
		within(t, "the chat's end", func() bool { return !m.c.live(chat) })
		control.call("PING", object{})
		if h.dials.Load() != 2 {
			t.Errorf("%d dials", h.dials.Load())
		}
	})
	for _, status := range []int{404, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			h := newHub(t)
			var n atomic.Int32
			h.refuse = func(*http.Request) int {
				if n.Add(1) <= 3 {
					return status
				}
				return 0
			}
			m := runMachine(t, h, nil)
			take(t, h.control, "control connection").greet(nil)
			if s := m.waitState(tunnel.Offline); s.Reason == "" || s.Retry.IsZero() {
				t.Errorf("the person reads %+v", s)
			}
			m.waitState(tunnel.Online)
		})
	}
}

func TestHalfOpen(t *testing.T) {
	h := newHub(t)
	m, _ := online(t, h, func(o *Options) {
		o.Timings.Heartbeat, o.Timings.PongTimeout = 100*time.Millisecond, 100*time.Millisecond
	})
	m.waitState(tunnel.Online)
	// This end reads nothing any more, so it answers no ping.
	began := time.Now()
	next := take(t, h.control, "next connection")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("noticed after %s", took)
	}
	next.greet(nil)
}

func TestRenewWhenIdle(t *testing.T) {
	h := newHub(t)
	fresh, hold := make(chan struct{}), make(chan struct{})
	var token atomic.Int32
	token.Store(1)
	_, control, data := working(t, h, func(o *Options) {
		o.Token = func(context.Context) (string, error) { return fmt.Sprint("t", token.Load()), nil }
		o.Fresh = func(ctx context.Context, old string) (string, error) {
			if old != "t1" {
				<-ctx.Done()
				return "", ctx.Err()
			}
			select {
			case <-fresh:
			case <-ctx.Done():
				return "", ctx.Err()
			}
			return "t2", nil
		}
		o.Handler = func(context.Context, wire.Message, tunnel.Exchange) (wire.Type, wire.Payload, error) {
			<-hold
			return wire.TypeAck, &wire.Empty{}, nil
		}
	})
	data.ask("FILE_DELETE", "d1", object{"path": root + "/a"})
	data.call("PING", object{}) // so the request before it has been taken
	token.Store(2)
	close(fresh)
	time.Sleep(50 * time.Millisecond)
	if len(h.control) != 0 {
		t.Error("the connection was renewed under a request")
	}
	close(hold)
	if f := data.next(); f.Type != "ACK" {
		t.Errorf("%s %s", f.Type, f.Payload)
	}
	if code := control.closes(); code != 1000 {
		t.Errorf("closed with %d", code)
	}
	next := take(t, h.control, "next connection")
	next.greet(nil)
	if next.token != "Bearer t2" {
		t.Errorf("dialled with %q", next.token)
	}
}

func TestStopsAtOnce(t *testing.T) {
	h := newHub(t)
	m, control, data := working(t, h, nil)
	m.stop()
	if err := take(t, m.ended, "end"); err != nil {
		t.Error(err)
	}
	if a, b := control.closes(), data.closes(); a != 1000 || b != 1000 {
		t.Errorf("closed with %d and %d", a, b)
	}
}

func TestNewRefuses(t *testing.T) {
	good := func() Options {
		return Options{URL: "https://platform.example/x/", Token: func(context.Context) (string, error) { return "", nil }, Hello: func() msg.Hello { return msg.Hello{} },
			Folders: newFolders(), Handler: func(context.Context, wire.Message, tunnel.Exchange) (wire.Type, wire.Payload, error) {
				return "", nil, nil
			}, Network: &tunnel.Network{}}
	}
	for name, spoil := range map[string]func(o *Options){
		"no address": func(o *Options) { o.URL = "" }, "no host": func(o *Options) { o.URL = "wss:///x" }, "scheme": func(o *Options) { o.URL = "ftp://x" },
		"no token": func(o *Options) { o.Token = nil }, "no hello": func(o *Options) { o.Hello = nil },
		"no folders": func(o *Options) { o.Folders = nil }, "no handler": func(o *Options) { o.Handler = nil },
	} {
		o := good()
		spoil(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	c, err := New(good())
	if err != nil || c.url != "wss://platform.example/x/ws/local-executor" {
		t.Errorf("%v, %v", c, err)
	}
}
