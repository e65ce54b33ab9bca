package autogpt

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func helloWith(fields string) []byte {
	if fields != "" {
		fields = "," + fields
	}
	return fmt.Appendf(nil, `{"type":"HELLO","id":"h1","ts":1,"payload":{"machine_id":"m-1","platform":"linux","arch":"x86_64"%s}}`, fields)
}

// Each check of the reference has its close code.
func TestDecodeHello(t *testing.T) {
	list := func(n int) string { return "[" + strings.Repeat(`"input.click",`, n-1) + `"input.click"]` }
	for _, c := range []struct {
		name    string
		frame   []byte
		control bool
		code    int // 0: taken
	}{
		{"shortest", helloWith(""), true, 0},
		{"nulls", helloWith(`"allowed_root":null,"capabilities":null,"computer_use_features":null,"local_llm_models":null,"protocol_version":null`), true, 0},
		{"unknown field", helloWith(`"colour":"red"`), true, 0},
		{"on data", helloWith(`"allowed_root":"/home/ana"`), false, 0},
		{"over 64 KiB", helloWith(`"display_name":"` + strings.Repeat("x", MaxHello) + `"`), true, CloseBadHello},
		{"not JSON", []byte("HELLO"), true, CloseInternal},
		{"not an object", []byte("[]"), true, CloseBadHello},
		{"another type", frameOf(TypePong, `{}`), true, CloseBadHello},
		{"no id", []byte(`{"type":"HELLO","payload":{}}`), true, CloseBadHello},
		{"no payload", []byte(`{"type":"HELLO","id":"h1"}`), true, CloseBadHello},
		{"no machine", frameOf(TypeHello, `{"platform":"linux","arch":"x86_64"}`), true, CloseBadHello},
		{"machine with a blank", helloWith(`"machine_id":"a b"`), true, CloseBadHello},
		{"root on control", helloWith(`"allowed_root":"/"`), true, CloseBadHello},
		{"no root on data", helloWith(``), false, CloseBadHello},
		{"empty root on data", helloWith(`"allowed_root":""`), false, CloseBadHello},
		{"relative root", helloWith(`"allowed_root":"home"`), false, CloseBadHello},
		{"long root", helloWith(`"allowed_root":"/` + strings.Repeat("x", MaxRoot) + `"`), false, CloseBadHello},
		{"markup in the root", helloWith(`"allowed_root":"/a<b"`), false, CloseBadHello},
		{"control character in the name", helloWith(`"display_name":"a\u0007"`), true, CloseBadHello},
		{"line separator in the name", helloWith(`"display_name":"a\u2028"`), true, CloseBadHello},
		{"direction mark in the name", helloWith(`"display_name":"a\u202e"`), true, CloseBadHello},
		{"unknown platform", helloWith(`"platform":"plan9"`), true, CloseBadHello},
		{"unknown arch", helloWith(`"arch":"mips"`), true, CloseBadHello},
		{"version of letters", helloWith(`"protocol_version":"one"`), true, CloseBadHello},
		{"number among capabilities", helloWith(`"capabilities":["files",1]`), true, CloseBadHello},
		{"too many features", helloWith(`"computer_use_features":` + list(129)), true, CloseBadHello},
		{"feature with a blank", helloWith(`"computer_use_features":[" input.click"]`), true, CloseBadHello},
		{"most features", helloWith(`"computer_use_features":` + list(128)), true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, h, err := DecodeHello(c.frame, c.control)
			if c.code == 0 {
				if err != nil || m.ID != "h1" || h == nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			var ce *CloseError
			if !errors.As(err, &ce) || ce.Code != c.code || ce.Reason == "" {
				t.Errorf("%v; want %d", err, c.code)
			}
		})
	}
}

func TestNegotiate(t *testing.T) {
	for theirs, want := range map[string]string{"1.1": "1.1", "1.0": "1.0", "1.7": "1.1", "2.0": "", "0.9": "", "1": "", "1.x": "", "": "", "1.1.1": "", "99999999999999999.1": ""} {
		if got, ok := Negotiate(theirs); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v; want %q", theirs, got, ok, want)
		}
	}
}

func TestGrant(t *testing.T) {
	got := Grant([]string{Files, "hardware_usb", Shell, Files, Browse}, []string{Shell, "hardware_usb", Files})
	if !reflect.DeepEqual(got, []string{Files, Shell}) {
		t.Errorf("granted %v", got)
	}
}

func TestSessionFits(t *testing.T) {
	for id, want := range map[string]bool{"a": true, chat: true, "A.b_c:d-e": true, "": false, "-a": false, "a/b": false, "a b": false, "ä": false,
		strings.Repeat("a", 256): true, strings.Repeat("a", 257): false} {
		if SessionFits(id) != want {
			t.Errorf("%q: %v", id, !want)
		}
	}
}
