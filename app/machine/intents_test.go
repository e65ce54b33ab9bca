package machine

import (
	"strings"
	"testing"

	"localpc/tunnel/hub/store"
)

// The name that a person gives a program is taken or refused here, with a
// sentence; the hub has no objection of its own.
func TestKeyName(t *testing.T) {
	for name, want := range map[string]string{
		"Research agent":                "",
		"研究 " + strings.Repeat("長", 57): "",
		"":                              "1 to 60",
		"   ":                           "1 to 60",
		strings.Repeat("a", 61):         "1 to 60",
		"a\nb":                          "can't be seen",
		"a\u202eb":                      "can't be seen",
		"a\u00a0b":                      "can't be seen",
		"a\xffb":                        "can't be seen",
	} {
		err := keyName(name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
		if err == nil && store.CheckName(name) != nil {
			t.Errorf("the hub refuses %q: %v", name, store.CheckName(name))
		}
	}
}
