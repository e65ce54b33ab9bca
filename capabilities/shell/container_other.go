//go:build !linux

package shell

import (
	"context"
	"errors"
	"os"

	"localpc/capabilities"
	"localpc/capabilities/shell/spawn"
	"localpc/tunnel/wire"
)

// uncontained is said wherever a container would be.
const uncontained = "Programs can't be kept inside a folder on this system, so each command would have full access."

// container is never made here.
type container struct {
	checks []spawn.Check
	hold   []spawn.Held
	env    map[string]string
}

func (*container) close() {}

func (*container) start(int) ([]string, []*os.File, error) {
	return nil, nil, errors.New("no container")
}

// box is never made either.
type box struct{}

func (*box) forget(int64) {}

func (*Shell) enter(string, *container) (*box, error) { return nil, errors.New("no container") }
func (*Shell) leave(string, *box)                     {}
func (*Shell) closeBox(context.Context, string) error { return nil }

func (s *Shell) newContainer(*plan, string) (*container, error) {
	return nil, wire.Wrap(errors.New("no container"), wire.CodeUnconfined, uncontained)
}

func (s *Shell) tryContainer(context.Context) string { return uncontained }

// folderID makes sure that the session's folder is still the one that was
// chosen.
func folderID(sess *capabilities.Session) (capabilities.FileID, error) {
	id, err := capabilities.FolderID(sess.Folder)
	if err != nil || !id.Same(sess.FolderID) {
		return capabilities.FileID{}, folderGone(err)
	}
	return id, nil
}

// list and learn are of contained commands, of which there are none.
func (s *Shell) list(context.Context, *capabilities.Session) *listing { return &listing{} }

func (s *Shell) learn(context.Context, *capabilities.Session, *listing) []string { return nil }
