package autogpt

import (
	"slices"
	"testing"
)

func TestFeatures(t *testing.T) {
	fine, coarse := FeaturesOf(Does{Pictures: true, Input: true, Windows: true, Clipboard: true})
	if !slices.Equal(fine, Features) || !slices.Equal(coarse, Coarse) {
		t.Errorf("all: %v %v", fine, coarse)
	}
	fine, coarse = FeaturesOf(Does{Pictures: true, Clipboard: true})
	if !slices.Equal(fine, []string{"screenshot.capture", "screenshot.region", "display.info", "clipboard.read", "clipboard.write", "permissions.check"}) ||
		!slices.Equal(coarse, []string{"screenshot", "clipboard", "permissions"}) {
		t.Errorf("pictures alone: %v %v", fine, coarse)
	}
	fine, coarse = FeaturesOf(Does{Pictures: true, Input: true})
	if slices.Contains(fine, "window.list") || slices.Contains(fine, "screenshot.window") || slices.Contains(coarse, "windows") || slices.Contains(coarse, "apps") || !slices.Contains(fine, "app.launch") {
		t.Errorf("without windows: %v %v", fine, coarse)
	}
	if fine, coarse = FeaturesOf(Does{Windows: true, Clipboard: true}); fine != nil || coarse != nil {
		t.Errorf("nothing to see, nothing to do: %v %v", fine, coarse)
	}
	h := Hello{Coarse: List[string]{"windows"}, Features: List[string]{"input.click"}}
	if !h.Advertises("windows", "window.list") || !h.Advertises("input", "input.click") || h.Advertises("input", "input.wait") || h.Advertises("clipboard") {
		t.Error("what is advertised is mixed up")
	}
}
