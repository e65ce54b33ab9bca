package autogpt

import (
	"errors"
	"strings"
	"testing"

	"localpc/tunnel/wire"
)

// A list holds what it says it holds; null in it is not an empty name.
func TestListsHoldNoNull(t *testing.T) {
	hello := `{"type":"HELLO","id":"h","ts":1,"payload":{"protocol_version":"1.1","machine_id":"m-1","platform":"linux","arch":"x86_64","allowed_root":null,LIST}}`
	for _, list := range []string{`"capabilities":[null]`, `"capabilities":["files",null]`, `"capabilities":[1]`, `"capabilities":{}`, `"capabilities":"files"`,
		`"computer_use_features":[null]`, `"recording_routes":["a",null]`, `"local_llm_models":[["a"]]`} {
		_, _, err := DecodeHello([]byte(strings.ReplaceAll(hello, "LIST", list)), true)
		var refused *CloseError
		if !errors.As(err, &refused) || refused.Code != CloseBadHello {
			t.Errorf("%s: %v", list, err)
		}
	}
	for _, list := range []string{`"capabilities":null`, `"capabilities":[]`, `"capabilities":["files"],"unknown":[null]`} {
		if _, _, err := DecodeHello([]byte(strings.ReplaceAll(hello, "LIST", list)), true); err != nil {
			t.Errorf("%s: %v", list, err)
		}
	}
	ack := `{"type":"HELLO_ACK","id":"h","ts":1,"payload":{"granted_capabilities":[null]}}`
	if _, err := Decode([]byte(ack), wire.ToMachine); err == nil {
		t.Error("a grant of null is taken")
	}
}
