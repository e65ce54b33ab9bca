package claude_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"localpc/tunnel/hub/claude"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// called is one call of a tool of the hub.
type called struct {
	Tool string
	Args map[string]any
}

// tools stands for a hub: a screen of 2912 × 1638 that is shown at half its size.
type tools struct {
	calls  []called
	shots  int
	size   image.Point                         // of pictures; zero is 1456 × 819
	answer func(called) (*claude.Reply, error) // nil, or nil from it, is the usual
}

func (f *tools) Call(_ context.Context, tool string, args map[string]any) (claude.Reply, error) {
	data, err := json.Marshal(args) // as it goes to the hub
	if err != nil {
		return claude.Reply{}, err
	}
	c := called{Tool: tool}
	if err := json.Unmarshal(data, &c.Args); err != nil {
		return claude.Reply{}, err
	}
	f.calls = append(f.calls, c)
	if f.answer != nil {
		if r, err := f.answer(c); r != nil || err != nil {
			if r == nil {
				r = &claude.Reply{}
			}
			return *r, err
		}
	}
	switch tool {
	case "local_pc_screenshot", "local_pc_zoom":
		f.shots++
		size := f.size
		if size == (image.Point{}) {
			size = image.Pt(1456, 819)
		}
		return picture(fmt.Sprintf("pic_%d", f.shots), size), nil
	case "local_pc_cursor_position":
		return claude.Reply{Text: "x=1, y=2", Structured: json.RawMessage(`{"device":[-2900,100],"monitor":0}`)}, nil
	}
	return claude.Reply{Text: "Done."}, nil
}

// grey are pictures by their size.
var grey sync.Map

func picture(id string, size image.Point) claude.Reply {
	data, ok := grey.Load(size)
	if !ok {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, image.NewGray(image.Rectangle{Max: size}), nil); err != nil {
			panic(err)
		}
		data = b.Bytes()
		grey.Store(size, data)
	}
	return claude.Reply{Image: data.([]byte), MIME: "image/jpeg", Text: "Picture.",
		Picture: json.RawMessage(fmt.Sprintf(`{"id":%q,"width":%d,"height":%d,"shows":[-2912,0,0,1638],"hidden":["KeePassXC"]}`, id, size.X, size.Y))}
}

// did are the calls so far but those that look.
func (f *tools) did() []called {
	return slices.DeleteFunc(slices.Clone(f.calls), func(c called) bool { return c.Tool == "local_pc_screenshot" })
}

// block is a tool_use in the shape s.
func block(s claude.Shape, id, action, params string) string {
	if s == claude.Toolset {
		return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"toolset_name":"computer","input":{%s}}`, id, action, params)
	}
	if params != "" {
		params = "," + params
	}
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"computer","input":{"action":%q%s}}`, id, action, params)
}

func turn(blocks ...string) json.RawMessage {
	return json.RawMessage(`[{"type":"thinking","thinking":"Hm.","signature":"x"},{"type":"text","text":"I do it."},` + strings.Join(blocks, ",") + `]`)
}

// answer answers a turn; what it answers is given as JSON has it.
func answer(t *testing.T, a *claude.Adapter, content json.RawMessage) []map[string]any {
	t.Helper()
	results, err := a.Answer(t.Context(), content)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(results)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func text(result map[string]any) string {
	switch c := result["content"].(type) {
	case string:
		return c
	case []any:
		s := ""
		for _, b := range c {
			if part, _ := b.(map[string]any)["text"].(string); part != "" {
				s += part
			}
		}
		return s
	}
	return ""
}

func pictures(result map[string]any) (n int) {
	list, _ := result["content"].([]any)
	for _, b := range list {
		if source, ok := b.(map[string]any)["source"].(map[string]any); ok && source["type"] == "base64" && source["media_type"] == "image/jpeg" {
			n++
		}
	}
	return n
}

// Every action of both tools, with the tool of the hub that does it.
func TestEveryAction(t *testing.T) {
	at := func(more map[string]any) map[string]any {
		m := map[string]any{"coordinate": []any{100., 200.}, "picture": "pic_1"}
		for k, v := range more {
			m[k] = v
		}
		return m
	}
	second := 2
	const here = `"coordinate":[100,200]`
	type m = map[string]any
	for _, c := range []struct {
		action, params string
		tool           string
		args           m
	}{
		{"left_click", here, "local_pc_click", at(m{"button": "left", "clicks": 1.})},
		{"right_click", here, "local_pc_click", at(m{"button": "right", "clicks": 1.})},
		{"middle_click", here, "local_pc_click", at(m{"button": "middle", "clicks": 1.})},
		{"double_click", here, "local_pc_click", at(m{"button": "left", "clicks": 2.})},
		{"triple_click", here, "local_pc_click", at(m{"button": "left", "clicks": 3.})},
		{"left_click", "", "local_pc_click", m{"button": "left", "clicks": 1., "picture": "pic_1"}},
		{"left_click", here + `,"text":"ctrl+shift"`, "local_pc_click", at(m{"button": "left", "clicks": 1., "modifiers": []any{"ctrl", "shift"}})},
		{"left_click", `"coordinate":[99.6,200.4],"text":"CMD"`, "local_pc_click", at(m{"button": "left", "clicks": 1., "modifiers": []any{"super"}})},
		{"left_click_drag", here + `,"start_coordinate":[1,2],"text":"alt"`, "local_pc_drag", m{"path": []any{[]any{1., 2.}, []any{100., 200.}}, "modifiers": []any{"alt"}, "picture": "pic_1"}},
		{"mouse_move", here, "local_pc_mouse_move", at(nil)},
		{"left_mouse_down", "", "local_pc_mouse_down", m{"picture": "pic_1"}},
		{"left_mouse_down", here, "local_pc_mouse_down", at(nil)},
		{"left_mouse_up", "", "local_pc_mouse_up", m{"picture": "pic_1"}},
		{"left_mouse_up", here, "local_pc_mouse_up", at(nil)},
		{"scroll", here + `,"scroll_direction":"left","scroll_amount":7,"text":"shift"`, "local_pc_scroll", at(m{"direction": "left", "amount": 7., "modifiers": []any{"shift"}})},
		{"scroll", `"scroll_direction":"down","scroll_amount":0`, "local_pc_scroll", m{"direction": "down", "amount": 0., "picture": "pic_1"}},
		{"type", `"text":"Grüße 👋\n"`, "local_pc_type", m{"text": "Grüße 👋\n"}},
		{"key", `"text":"ctrl+s"`, "local_pc_key", m{"key": "ctrl+s"}},
		{"key", `"text":"Down","repeat":100`, "local_pc_key", m{"key": "Down", "repeat": 100.}},
		{"hold_key", `"text":"shift","duration":1.5`, "local_pc_hold_key", m{"key": "shift", "duration_s": 1.5}},
		{"wait", `"duration":100`, "local_pc_wait", m{"duration_s": 100.}},
		{"zoom", `"region":[10,20,110,220]`, "local_pc_zoom", m{"region": []any{10., 20., 110., 220.}, "picture": "pic_1", "max_edge": 1568., "max_tiles": 1568.}},
		{"cursor_position", "", "local_pc_cursor_position", m{}},
	} {
		for _, shape := range []claude.Shape{claude.Toolset, claude.Tool} {
			hub := &tools{}
			a := claude.New(claude.Options{Tools: hub, Shape: shape, Machine: "Mac-1", Monitor: &second})
			answer(t, a, turn(block(shape, "t1", "screenshot", "")))
			if got, want := hub.calls[0].Args, (m{"machine": "Mac-1", "monitor": 2., "max_edge": 1568., "max_tiles": 1568.}); !reflect.DeepEqual(got, want) {
				t.Fatalf("a screenshot is asked for with %v", got)
			}
			got := answer(t, a, turn(block(shape, "t2", c.action, c.params)))
			c.args["machine"] = "Mac-1"
			if did := hub.did(); len(did) != 1 || did[0].Tool != c.tool || !reflect.DeepEqual(did[0].Args, c.args) {
				t.Errorf("%s %s %s did %v, not %s %v", shape, c.action, c.params, did, c.tool, c.args)
			}
			if len(got) != 1 || got[0]["type"] != "tool_result" || got[0]["tool_use_id"] != "t2" || got[0]["is_error"] != nil {
				t.Errorf("%s %s is answered with %v", shape, c.action, got)
			}
			if name := got[0]["toolset_name"]; shape == claude.Toolset && name != "computer" || shape == claude.Tool && name != nil {
				t.Errorf("%s %s is answered with the toolset's name %v", shape, c.action, name)
			}
		}
	}
}

// What an action lacks is told, and nothing is done.
func TestActionsThatAreNone(t *testing.T) {
	for _, c := range []struct{ action, params, say string }{
		{"left_click", `"coordinate":[1]`, "2 numbers"},
		{"left_click", `"coordinate":"1,2"`, "coordinate"},
		{"left_click", `"coordinate":[1e30,2]`, "far outside"},
		{"left_click", `"text":"ctrl+x"`, "shift, ctrl, alt and super"},
		{"mouse_move", ``, "needs coordinate"},
		{"left_click_drag", `"coordinate":[1,2]`, "start_coordinate"},
		{"scroll", `"scroll_amount":3`, "scroll_direction"},
		{"scroll", `"scroll_direction":"up"`, "scroll_amount"},
		{"scroll", `"scroll_direction":"up","scroll_amount":-3`, "scroll_amount"},
		{"type", ``, "needs text"},
		{"key", `"text":""`, "needs text"},
		{"key", `"text":"a","repeat":101`, "1 to 100"},
		{"key", `"text":"a","repeat":0`, "1 to 100"},
		{"hold_key", `"text":"a"`, "duration"},
		{"hold_key", `"text":"a","duration":301`, "0 to "},
		{"wait", `"duration":-1`, "0 to "},
		{"zoom", ``, "needs region"},
		{"zoom", `"region":[0,0,1457,10]`, "1456 × 819"},
		{"zoom", `"region":[5,5,5,9]`, "left, top, right, bottom"},
		{"dance", ``, `no action "dance"`},
		{"", ``, "no action"},
	} {
		for _, shape := range []claude.Shape{claude.Toolset, claude.Tool} {
			hub := &tools{}
			a := claude.New(claude.Options{Tools: hub, Shape: shape})
			answer(t, a, turn(block(shape, "t1", "screenshot", "")))
			got := answer(t, a, turn(block(shape, "t2", c.action, c.params)))
			if len(got) != 1 || got[0]["is_error"] != true || !strings.Contains(text(got[0]), c.say) {
				t.Errorf("%s %s %s is answered with %v, not %q", shape, c.action, c.params, got, c.say)
			}
			if did := hub.did(); len(did) > 0 {
				t.Errorf("%s %s %s did %v", shape, c.action, c.params, did)
			}
		}
	}
	// The tool's limit of time is the lower one.
	for shape, fails := range map[claude.Shape]bool{claude.Toolset: false, claude.Tool: true} {
		a := claude.New(claude.Options{Tools: &tools{}, Shape: shape})
		if got := answer(t, a, turn(block(shape, "t", "wait", `"duration":101`))); (got[0]["is_error"] == true) != fails {
			t.Errorf("%s: waiting 101 s is answered with %v", shape, got)
		}
	}
}

// A turn's actions are done in order; after one that failed none is, and each is
// answered.
func TestATurnStopsAtTheFirstFailure(t *testing.T) {
	for _, shape := range []claude.Shape{claude.Toolset, claude.Tool} {
		hub := &tools{answer: func(c called) (*claude.Reply, error) {
			if c.Tool == "local_pc_key" {
				return &claude.Reply{Text: "The person at this computer declined this.", Failed: true}, nil
			}
			return nil, nil
		}}
		a := claude.New(claude.Options{Tools: hub, Shape: shape, Show: true})
		answer(t, a, turn(block(shape, "t0", "screenshot", "")))
		got := answer(t, a, turn(block(shape, "t1", "left_click", `"coordinate":[1,2]`),
			`{"type":"tool_use","id":"other","name":"get_weather","input":{}}`,
			block(shape, "t2", "key", `"text":"Return"`), block(shape, "t3", "type", `"text":"x"`), block(shape, "t4", "screenshot", "")))
		var ids []any
		for _, r := range got {
			ids = append(ids, r["tool_use_id"])
		}
		if !slices.Equal(ids, []any{"t1", "t2", "t3", "t4"}) {
			t.Fatalf("%s: answered are %v", shape, ids)
		}
		if got[0]["is_error"] != nil || got[1]["is_error"] != true || text(got[1]) != "The person at this computer declined this." {
			t.Errorf("%s: the first two are answered with %v", shape, got[:2])
		}
		for _, r := range got[2:] {
			if r["is_error"] != true || r["content"] != "Not executed: an earlier computer action in this turn failed." {
				t.Errorf("%s: what was not done is answered with %v", shape, r)
			}
		}
		if n := len(hub.calls); n != 3 {
			t.Errorf("%s: the hub was asked for %v", shape, hub.calls)
		}
		// The next turn is another one.
		if got := answer(t, a, turn(block(shape, "t5", "type", `"text":"x"`))); got[0]["is_error"] != nil || pictures(got[0]) != 1 {
			t.Errorf("%s: the next turn is answered with %v", shape, got)
		}
	}
}

// What is aimed at counts in the picture that the model had seen: none that came
// within the turn, no closer look, and none before the first.
func TestAimsAreOfThePictureThatWasSeen(t *testing.T) {
	hub := &tools{}
	a := claude.New(claude.Options{Tools: hub})
	click := block(claude.Toolset, "c", "left_click", `"coordinate":[1,2]`)
	got := answer(t, a, turn(block(claude.Toolset, "s", "screenshot", ""), click))
	if got[1]["is_error"] != true || !strings.Contains(text(got[1]), "screenshot first") || len(hub.did()) != 0 {
		t.Errorf("a click before anything was seen is answered with %v", got[1])
	}
	answer(t, a, turn(block(claude.Toolset, "z", "zoom", `"region":[0,0,10,10]`)))
	answer(t, a, turn(block(claude.Toolset, "s", "screenshot", ""), click))
	answer(t, a, turn(click))
	did := hub.did()
	if len(did) != 3 || did[1].Args["picture"] != "pic_1" || did[2].Args["picture"] != "pic_3" {
		t.Errorf("what was aimed at: %v", did)
	}
}

func TestWhereThePointerIs(t *testing.T) {
	a := claude.New(claude.Options{Tools: &tools{}})
	cursor := turn(block(claude.Toolset, "p", "cursor_position", ""))
	if got := answer(t, a, cursor); got[0]["is_error"] != true {
		t.Errorf("before a screenshot: %v", got)
	}
	answer(t, a, turn(block(claude.Toolset, "s", "screenshot", "")))
	if got := answer(t, a, cursor); text(got[0]) != "X=6,Y=50" {
		t.Errorf("the pointer is at %v", got)
	}
}

// Pictures come with what is hidden in them; one that is too large, or is none,
// is not sent.
func TestPictures(t *testing.T) {
	hub := &tools{}
	a := claude.New(claude.Options{Tools: hub})
	shot := turn(block(claude.Toolset, "s", "screenshot", ""))
	if got := answer(t, a, shot); pictures(got[0]) != 1 || !strings.Contains(text(got[0]), "KeePassXC") {
		t.Errorf("a screenshot is answered with %v", text(got[0]))
	}
	for _, size := range []image.Point{{X: 1569, Y: 100}, {X: 1500, Y: 1000}} {
		hub.size = size
		if got := answer(t, a, shot); pictures(got[0]) != 0 || got[0]["is_error"] != true || !strings.Contains(text(got[0]), "larger") {
			t.Errorf("a picture of %v is answered with %v", size, got)
		}
	}
	large := claude.New(claude.Options{Tools: hub, MaxEdge: 2576})
	if got := answer(t, large, shot); pictures(got[0]) != 1 {
		t.Errorf("a picture of %v for a model that takes it: %v", hub.size, text(got[0]))
	}
	if args := hub.calls[len(hub.calls)-1].Args; args["max_edge"] != 2576. || args["max_tiles"] != nil {
		t.Errorf("it was asked for with %v", args)
	}
	hub.answer = func(called) (*claude.Reply, error) {
		r := picture("pic_x", image.Pt(10, 10))
		r.Picture = json.RawMessage(`{"id":"pic_x","width":1456,"height":819,"shows":[0,0,1,1]}`)
		return &r, nil
	}
	if got := answer(t, a, shot); got[0]["is_error"] != true {
		t.Errorf("a picture that is not as told is answered with %v", text(got[0]))
	}
}

// The tool of 2025 has the size of the pictures; the toolset has none.
func TestDefinition(t *testing.T) {
	hub := &tools{}
	a := claude.New(claude.Options{Tools: hub, Shape: claude.Tool})
	want := map[string]any{"type": "computer_20251124", "name": "computer", "display_width_px": 1456, "display_height_px": 819, "enable_zoom": true}
	if got, err := a.Definition(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the tool is %v, %v", got, err)
	}
	hub.size = image.Pt(1280, 720)
	answer(t, a, turn(block(claude.Tool, "s", "screenshot", "")))
	n := len(hub.calls)
	if got, err := a.Definition(t.Context()); err != nil || got["display_width_px"] != 1280 || len(hub.calls) != n {
		t.Errorf("after the screen has changed it is %v, %v", got, err)
	}
	none := claude.New(claude.Options{Tools: hub, Shape: claude.Tool, NoZoom: true})
	if got, _ := none.Definition(t.Context()); got["enable_zoom"] != nil {
		t.Errorf("without zoom it is %v", got)
	}
	if got := answer(t, none, turn(block(claude.Tool, "z", "zoom", `"region":[0,0,9,9]`))); got[0]["is_error"] != true {
		t.Errorf("zoom that is switched off is answered with %v", got)
	}
	set := claude.New(claude.Options{Tools: &tools{answer: func(called) (*claude.Reply, error) { return nil, errors.New("not asked") }}})
	if got, err := set.Definition(t.Context()); err != nil || !reflect.DeepEqual(got, map[string]any{"type": "computer_toolset_20260801"}) {
		t.Errorf("the toolset is %v, %v", got, err)
	}
	hub.answer = func(called) (*claude.Reply, error) {
		return &claude.Reply{Text: "The person declined this.", Failed: true}, nil
	}
	if _, err := claude.New(claude.Options{Tools: hub, Shape: claude.Tool}).Definition(t.Context()); err == nil || err.Error() != "The person declined this." {
		t.Errorf("without a picture: %v", err)
	}
}

// An action that waits for the person is waited for.
func TestWaitingForThePerson(t *testing.T) {
	left := 2
	hub := &tools{answer: func(c called) (*claude.Reply, error) {
		if left == 0 {
			return nil, nil
		}
		if left--; c.Tool == "get_result" && c.Args["id"] != "r1" {
			return nil, fmt.Errorf("asked for %v", c.Args)
		}
		if left == 0 {
			r := picture("pic_1", image.Pt(1456, 819))
			return &r, nil
		}
		return &claude.Reply{Text: "…", Structured: json.RawMessage(`{"status":"pending","id":"r1","waits":"Waiting for the person at Mac-1","say":"Waiting for the person at Mac-1. Then get what comes of it."}`)}, nil
	}}
	var heard []string
	a := claude.New(claude.Options{Tools: hub, Waiting: func(s string) { heard = append(heard, s) }})
	if got := answer(t, a, turn(block(claude.Toolset, "s", "screenshot", ""))); pictures(got[0]) != 1 {
		t.Errorf("it is answered with %v", got)
	}
	if !slices.Equal(heard, []string{"Waiting for the person at Mac-1"}) {
		t.Errorf("the program heard %q", heard)
	}
}

// With Show the last result of a turn has a picture, unless the turn took one.
func TestShow(t *testing.T) {
	hub := &tools{}
	a := claude.New(claude.Options{Tools: hub, Show: true})
	got := answer(t, a, turn(block(claude.Toolset, "k", "key", `"text":"a"`), block(claude.Toolset, "l", "key", `"text":"b"`)))
	if pictures(got[0]) != 0 || pictures(got[1]) != 1 {
		t.Errorf("two keys are answered with %d and %d pictures", pictures(got[0]), pictures(got[1]))
	}
	n := hub.shots
	if got = answer(t, a, turn(block(claude.Toolset, "s", "screenshot", ""))); pictures(got[0]) != 1 || hub.shots != n+1 {
		t.Errorf("a screenshot took %d", hub.shots-n)
	}
	hub.answer = func(c called) (*claude.Reply, error) {
		if c.Tool == "local_pc_screenshot" {
			return &claude.Reply{Text: "It is black.", Failed: true}, nil
		}
		return nil, nil
	}
	if got = answer(t, a, turn(block(claude.Toolset, "k", "key", `"text":"a"`))); got[0]["is_error"] != nil || !strings.Contains(text(got[0]), "It is black.") {
		t.Errorf("an action without a picture is answered with %v", got)
	}
}

// Whatever a model sends: each computer action has one answer, in its order, and
// what is asked of the hub is within its limits.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(turn(block(claude.Toolset, "a", "left_click", `"coordinate":[1,2],"text":"ctrl"`), block(claude.Tool, "b", "zoom", `"region":[0,0,5,5]`))))
	f.Add([]byte(turn(block(claude.Tool, "a", "scroll", `"scroll_direction":"up","scroll_amount":1e9`), block(claude.Toolset, "b", "key", `"text":"a","repeat":7`))))
	f.Add([]byte(`[{"type":"tool_use","name":"computer","toolset_name":"computer","input":[]},{"type":"tool_use","id":"x","name":"computer"}]`))
	f.Add([]byte(`[{"type":"tool_use","id":"x","name":"hold_key","toolset_name":"computer","input":{"text":"a","duration":1e400}}]`))
	f.Fuzz(func(t *testing.T, content []byte) {
		blocks, err := claude.Parse(content)
		if err != nil {
			return
		}
		hub := &tools{size: image.Pt(64, 48)}
		a := claude.New(claude.Options{Tools: hub})
		if _, err := a.Answer(t.Context(), turn(block(claude.Toolset, "s", "screenshot", ""))); err != nil {
			t.Fatal(err)
		}
		results, err := a.Answer(t.Context(), content)
		if err != nil || len(results) != len(blocks) {
			t.Fatalf("%d actions have %d answers, %v", len(blocks), len(results), err)
		}
		failed := false
		for i, r := range results {
			if r.ToolUseID != blocks[i].ID || r.Toolset != blocks[i].Toolset {
				t.Errorf("action %d is answered as %+v", i, r)
			}
			if failed && (r.Content != claude.Skipped || !r.IsError) {
				t.Errorf("after a failure: %+v", r)
			}
			failed = failed || r.IsError
		}
		for _, c := range hub.calls {
			for name, most := range map[string]float64{"repeat": 100, "amount": 1000, "duration_s": 300, "clicks": 3} {
				if n, ok := c.Args[name].(float64); ok && !(n >= 0 && n <= most) {
					t.Errorf("%s is asked for with %v", c.Tool, c.Args)
				}
			}
		}
	})
}
