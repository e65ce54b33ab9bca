//go:build linux

package portal

import (
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"net/url"
	"os"

	"github.com/godbus/dbus/v5"
)

// Picture has the desktop take one of all its screens, without a dialog where
// it lets programs do that (GNOME asks the person once). The file that the
// desktop made is deleted.
func (p *Portal) Picture(ctx context.Context) (image.Image, error) {
	if p.Version(Screenshot) == 0 {
		return nil, ErrMissing
	}
	results, err := p.request(ctx, Screenshot+".Screenshot", map[string]any{"interactive": false, "modal": false}, "")
	if err != nil {
		return nil, err
	}
	return openPicture(results["uri"])
}

func openPicture(v dbus.Variant) (image.Image, error) {
	uri, _ := v.Value().(string)
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" {
		return nil, errors.New("the desktop named no file with the picture")
	}
	f, err := os.Open(u.Path)
	if err != nil {
		return nil, fmt.Errorf("open the desktop's picture: %w", err)
	}
	defer f.Close()
	// It shows the person's screen, so it does not stay.
	defer func() { _ = os.Remove(u.Path) }()
	m, _, err := image.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("read the desktop's picture: %w", err)
	}
	return m, nil
}
