//go:build unix

package claude_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"localpc/capabilities/computer/space"
	"localpc/tunnel"
	"localpc/tunnel/hub/claude"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// api plays Anthropic's: it checks each request as that does, and answers with
// one turn after the other.
type api struct {
	t     *testing.T
	shape claude.Shape
	turns []turnOf
	busy  int // so many requests are refused first

	mu       sync.Mutex
	requests []request // guarded by mu
}

type turnOf struct {
	stop    string
	content json.RawMessage
}

type request struct {
	Model     string
	MaxTokens int `json:"max_tokens"`
	System    string
	Tools     []map[string]any
	Messages  []struct {
		Role    string
		Content json.RawMessage
	}
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	refuse := func(status int, kind, say string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":%q}}`, kind, say)
	}
	if a.busy > 0 {
		a.busy--
		refuse(529, "overloaded_error", "Overloaded")
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != "sk-test" || r.Header.Get("Anthropic-Version") != "2023-06-01" || r.Header.Get("Content-Type") != "application/json" {
		a.t.Errorf("a request of another kind: %s %s %v", r.Method, r.URL, r.Header)
	}
	if beta := r.Header.Values("Anthropic-Beta"); a.shape == claude.Tool && (len(beta) != 1 || beta[0] != "computer-use-2025-11-24") || a.shape == claude.Toolset && len(beta) != 0 {
		a.t.Errorf("%s: the beta header is %q", a.shape, beta)
	}
	var q request
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		a.t.Errorf("a request: %v", err)
	}
	if say := a.check(q); say != "" {
		a.t.Error(say)
		refuse(http.StatusBadRequest, "invalid_request_error", say)
		return
	}
	a.requests = append(a.requests, q)
	turn := turnOf{"end_turn", json.RawMessage(`[]`)}
	if n := len(a.requests); n <= len(a.turns) {
		turn = a.turns[n-1]
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": q.Model, "content": turn.content, "stop_reason": turn.stop,
		"usage": map[string]int{"input_tokens": 1, "output_tokens": 1}})
}

// check says what the API would refuse.
func (a *api) check(q request) string {
	if len(q.Tools) != 1 || q.MaxTokens < 1 || q.Model == "" {
		return fmt.Sprintf("the request is %+v", q)
	}
	for i, m := range q.Messages {
		// Two of the model's follow each other after a pause.
		if m.Role != "assistant" && m.Role != "user" || i == 0 && m.Role != "user" || i > 0 && m.Role == "user" && q.Messages[i-1].Role == "user" {
			return fmt.Sprintf("message %d is of %s", i, m.Role)
		}
		if i == 0 || m.Role != "user" {
			continue
		}
		// Each tool_use before it has one tool_result in it, with its toolset's name.
		var uses, results []struct {
			Type, ID string
			Of       string  `json:"tool_use_id"`
			Toolset  *string `json:"toolset_name"`
		}
		if json.Unmarshal(q.Messages[i-1].Content, &uses) != nil || json.Unmarshal(m.Content, &results) != nil {
			return "content is no list"
		}
		want := map[string]*string{}
		for _, u := range uses {
			if u.Type == "tool_use" {
				want[u.ID] = u.Toolset
			}
		}
		for _, r := range results {
			toolset, asked := want[r.Of]
			if r.Type != "tool_result" || !asked || !reflect.DeepEqual(toolset, r.Toolset) {
				return fmt.Sprintf("a result that nothing asked for: %+v", r)
			}
			delete(want, r.Of)
		}
		if len(want) > 0 {
			return fmt.Sprintf("without a result are %v", want)
		}
	}
	return ""
}

// computerOf is a hub with a computer whose screen has the size, and a
// connection to it.
func computerOf(t *testing.T, size image.Point, ask func(wire.Message) error) (*tunneltest.Screen, *claude.Conn, *tunneltest.Pair) {
	t.Helper()
	screen := &tunneltest.Screen{Size: size, Fit: func(size image.Point, edge, tiles int) image.Point {
		return space.Limit{Edge: edge, Tiles: tiles}.Fit(size)
	}, Fail: ask}
	folder := &tunneltest.Folder{Dir: t.TempDir()}
	pair := tunneltest.New(t, func(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
		if reply, p, err, ok := screen.Handle(ctx, m); ok {
			return reply, p, err
		}
		return folder.Handle(ctx, m, x)
	}, tunneltest.WithScreen)
	transport := &http.Transport{}
	conn, err := claude.Dial(t.Context(), claude.Hub{Address: pair.URL + "/", Key: pair.Key, HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); transport.CloseIdleConnections() })
	return screen, conn, pair
}

func loopOf(t *testing.T, a *api, ad *claude.Adapter) *claude.Loop {
	t.Helper()
	server := httptest.NewServer(a)
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); server.Close() })
	return &claude.Loop{API: server.URL, Key: "sk-test", Model: "claude-test", Adapter: ad, HTTP: &http.Client{Transport: transport}, Pause: time.Millisecond}
}

// A model works on a computer through the hub in each shape: it looks, acts,
// hears what the person declines, and ends.
func TestLoop(t *testing.T) {
	for _, shape := range []claude.Shape{claude.Toolset, claude.Tool} {
		t.Run(string(shape), func(t *testing.T) {
			t.Parallel()
			screen, conn, _ := computerOf(t, image.Pt(1920, 1080), func(m wire.Message) error {
				if p, ok := m.Payload.(*wire.InputAction); ok && p.Action == wire.ActKey {
					return wire.Errorf(wire.CodeDenied, "The person at this computer declined this.")
				}
				return nil
			})
			a := &api{t: t, shape: shape, busy: 2, turns: []turnOf{
				{"tool_use", turn(block(shape, "a", "screenshot", ""))},
				{"tool_use", turn(block(shape, "b", "left_click", `"coordinate":[728,409],"text":"ctrl"`), block(shape, "c", "type", `"text":"Grüße"`))},
				{"tool_use", turn(block(shape, "d", "key", `"text":"ctrl+s"`), block(shape, "e", "zoom", `"region":[0,0,100,100]`))},
				{"end_turn", json.RawMessage(`[{"type":"text","text":"All done."}]`)},
			}}
			ad := claude.New(claude.Options{Tools: conn, Shape: shape, Show: true})
			l := loopOf(t, a, ad)
			var lines []string
			l.Say = func(s string) { lines = append(lines, s) }
			said, err := l.Run(t.Context(), "Save the file.")
			if err != nil || said != "All done." {
				t.Fatalf("it ended with %q, %v", said, err)
			}
			reached := screen.Reached()
			if len(reached) != 2 || *reached[0].At != image.Pt(960, 539) || reached[1].Action.Text != "Grüße" || reached[0].Action.Modifiers[0] != "ctrl" {
				t.Errorf("what was done: %+v", reached)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			want := map[string]any{"type": "computer_toolset_20260801"}
			if shape == claude.Tool {
				want = map[string]any{"type": "computer_20251124", "name": "computer", "display_width_px": 1456., "display_height_px": 819., "enable_zoom": true}
			}
			if len(a.requests) != 4 || !reflect.DeepEqual(a.requests[0].Tools[0], want) {
				t.Fatalf("%d requests, with the tool %v", len(a.requests), a.requests[0].Tools)
			}
			last := a.requests[3]
			if string(last.Messages[0].Content) != `"Save the file."` || len(last.Messages) != 7 {
				t.Errorf("the last request has %d messages", len(last.Messages))
			}
			// What the model thought goes back to it as it was.
			if got := string(last.Messages[1].Content); !strings.Contains(got, `"signature":"x"`) {
				t.Errorf("the model's own message went back as %s", got)
			}
			for i, parts := range map[int][]string{2: {`"image/jpeg"`, "KeePassXC"}, 4: {"Clicked at (728, 409).", "Typed 5 characters.", `"image/jpeg"`},
				6: {`"is_error":true`, "declined this.", "Do not try", claude.Skipped}} {
				for _, part := range parts {
					if !strings.Contains(string(last.Messages[i].Content), part) {
						t.Errorf("message %d lacks %q: %.400s", i, part, last.Messages[i].Content)
					}
				}
			}
			if all := strings.Join(lines, "\n"); !strings.Contains(all, "did not work: The person at this computer declined this.") || !strings.Contains(all, "I do it.") || !strings.Contains(all, "728") {
				t.Errorf("what was said: %s", all)
			}
		})
	}
}

// The published sizes of pictures, declared with the tool as they come from the
// computer.
func TestPublishedSizes(t *testing.T) {
	for device, want := range map[image.Point]image.Point{
		{X: 1920, Y: 1080}: {X: 1456, Y: 819}, {X: 2560, Y: 1440}: {X: 1456, Y: 819}, {X: 3840, Y: 2160}: {X: 1456, Y: 819}, {X: 2560, Y: 1600}: {X: 1389, Y: 868},
		{X: 3456, Y: 2234}: {X: 1372, Y: 887}, {X: 3440, Y: 1440}: {X: 1568, Y: 656}, {X: 5120, Y: 1440}: {X: 1568, Y: 441}, {X: 1024, Y: 768}: {X: 1024, Y: 768},
	} {
		t.Run(device.String(), func(t *testing.T) {
			t.Parallel()
			screen, conn, _ := computerOf(t, device, nil)
			a := claude.New(claude.Options{Tools: conn, Shape: claude.Tool})
			d, err := a.Definition(t.Context())
			if err != nil || d["display_width_px"] != want.X || d["display_height_px"] != want.Y {
				t.Fatalf("the tool is %v, %v", d, err)
			}
			answer(t, a, turn(block(claude.Tool, "s", "screenshot", "")))
			corner := fmt.Sprintf(`"coordinate":[%d,%d]`, want.X-1, want.Y-1)
			answer(t, a, turn(block(claude.Tool, "c", "left_click", corner)))
			if r := screen.Reached(); len(r) != 1 || r[0].At.X < device.X-4 || r[0].At.Y < device.Y-4 {
				t.Errorf("the last pixel is %+v", r)
			}
		})
	}
}

func TestLoopEnds(t *testing.T) {
	click := turn(block(claude.Toolset, "w", "wait", `"duration":0`))
	for name, c := range map[string]struct {
		turns []turnOf
		fails string
	}{
		"turns":      {[]turnOf{{"tool_use", click}, {"tool_use", click}, {"tool_use", click}}, "turns were used up"},
		"refusal":    {[]turnOf{{"refusal", json.RawMessage(`[{"type":"text","text":"No."}]`)}}, "declined"},
		"long":       {[]turnOf{{"max_tokens", json.RawMessage(`[]`)}}, "longer"},
		"unknown":    {[]turnOf{{"full_moon", json.RawMessage(`[]`)}}, "full_moon"},
		"nothing":    {[]turnOf{{"tool_use", json.RawMessage(`[]`)}}, "named none"},
		"other tool": {[]turnOf{{"tool_use", json.RawMessage(`[{"type":"tool_use","id":"x","name":"get_weather","input":{}}]`)}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := loopOf(t, &api{t: t, shape: claude.Toolset, turns: c.turns}, claude.New(claude.Options{Tools: &tools{}}))
			l.MaxTurns = 2
			_, err := l.Run(t.Context(), "Do it.")
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("it ended with %v, not %q", err, c.fails)
			}
		})
	}
	l := loopOf(t, &api{t: t, shape: claude.Toolset, busy: 1000}, claude.New(claude.Options{Tools: &tools{}}))
	if _, err := l.Run(t.Context(), "Do it."); err == nil || !strings.Contains(err.Error(), "529: Overloaded") {
		t.Errorf("an API that stays busy: %v", err)
	}
	gone := errors.New("gone")
	a := claude.New(claude.Options{Tools: &tools{answer: func(called) (*claude.Reply, error) { return nil, gone }}})
	if _, err := loopOf(t, &api{t: t, shape: claude.Toolset, turns: []turnOf{{"tool_use", click}}}, a).Run(t.Context(), "Do it."); !errors.Is(err, gone) {
		t.Errorf("a hub that is gone: %v", err)
	}
}

func TestDialWithAKeyThatIsNone(t *testing.T) {
	_, _, pair := computerOf(t, image.Pt(100, 100), nil)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	if _, err := claude.Dial(t.Context(), claude.Hub{Address: pair.URL, Key: "e2b_none", HTTP: &http.Client{Transport: transport}}); err == nil {
		t.Error("it connected")
	}
}

// The newest pictures go to the API with each request, older ones are left out.
func TestOlderPicturesAreLeftOut(t *testing.T) {
	_, conn, _ := computerOf(t, image.Pt(320, 200), nil)
	a := &api{t: t, shape: claude.Toolset}
	for i := range 15 {
		a.turns = append(a.turns, turnOf{"tool_use", turn(block(claude.Toolset, fmt.Sprintf("a%d", i), "screenshot", ""), block(claude.Toolset, fmt.Sprintf("b%d", i), "zoom", `"region":[0,0,100,100]`))})
		if i == 0 { // zoom needs one before it
			a.turns[0].content = turn(block(claude.Toolset, "a0", "screenshot", ""))
		}
	}
	if _, err := loopOf(t, a, claude.New(claude.Options{Tools: conn})).Run(t.Context(), "Look."); err != nil {
		t.Fatal(err)
	}
	last := a.requests[len(a.requests)-1].Messages
	var were []bool // of each picture: it is one still
	for _, m := range last {
		if m.Role != "user" {
			continue
		}
		var results []struct{ Content []struct{ Type, Text string } }
		_ = json.Unmarshal(m.Content, &results) // the task is a string
		for _, r := range results {
			for _, c := range r.Content {
				if c.Type == "image" || strings.Contains(c.Text, "older picture") {
					were = append(were, c.Type == "image")
				}
			}
		}
	}
	want := append(slices.Repeat([]bool{false}, 9), slices.Repeat([]bool{true}, 20)...)
	if !slices.Equal(were, want) {
		t.Errorf("the last request has the pictures %v", were)
	}
}

// A key goes to the address that was named, and to no other one.
func TestKeysStayWhereTheyBelong(t *testing.T) {
	var reached atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer here.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	l := &claude.Loop{API: here.URL, Key: "sk-test", Model: "claude-test", Adapter: claude.New(claude.Options{Tools: &tools{}}), HTTP: client, Pause: time.Hour}
	if _, err := l.Run(t.Context(), "Do it."); err == nil || !strings.Contains(err.Error(), "leads on to "+other.URL) {
		t.Errorf("the API: %v", err)
	}
	if _, err := claude.Dial(t.Context(), claude.Hub{Address: here.URL, Key: "e2b_key", HTTP: client}); err == nil || !strings.Contains(err.Error(), "leads on to "+other.URL) {
		t.Errorf("the hub: %v", err)
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("the other address was asked %d times", n)
	}
}
