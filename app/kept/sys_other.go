//go:build !linux

package kept

import (
	"context"
	"errors"
	"os"
)

// supported: where files can't be told apart by more than their names, nothing
// is kept, and cards say "cannot be undone".
const supported = false

// dir is never opened here.
type dir struct{ f *os.File }

var errSystem = errors.New("nothing is kept on this system")

// Full tells whether something failed since a disk is full.
func Full(error) bool { return false }

func openDir(string) (*dir, error)                                             { return nil, errSystem }
func dirOf(*os.Root) (*dir, error)                                             { return nil, errSystem }
func lstatFile(*os.File) (node, error)                                         { return node{}, errSystem }
func renameNew(*dir, string, *dir, string) error                               { return errSystem }
func hardLink(*dir, string, *dir, string) error                                { return errSystem }
func beingWritten(*dir, string) bool                                           { return true }
func crossDevice(error) bool                                                   { return false }
func procPath(*os.File) string                                                 { return "" }
func clone(_, _ *os.File) bool                                                 { return false }
func (c *copier) file(context.Context, *dir, string, *dir, string, node) error { return errSystem }
func readSmall(*dir, string, []byte) (int, bool, error)                        { return 0, false, errSystem }
func attributesOf(*os.File) map[string]string                                  { return nil }
func copyAttributes(_, _ *os.File)                                             {}
func (d *dir) close()                                                          {}
func (d *dir) down(string) (*dir, error)                                       { return nil, errSystem }
func (d *dir) at(string) (*dir, error)                                         { return nil, errSystem }
func (d *dir) sub(string) (*dir, error)                                        { return nil, errSystem }
func (d *dir) names() ([]string, error)                                        { return nil, errSystem }
func (d *dir) lstat(string) (node, error)                                      { return node{}, errSystem }
func (d *dir) mkdir(string, uint32) error                                      { return errSystem }
func (d *dir) symlink(string, string) error                                    { return errSystem }
func (d *dir) mkfifo(string) error                                             { return errSystem }
func (d *dir) isFifo(string) bool                                              { return false }
func (d *dir) readlink(string) (string, error)                                 { return "", errSystem }
func (d *dir) unlink(string) error                                             { return errSystem }
func (d *dir) rmdir(string) error                                              { return errSystem }
func (d *dir) chmod(string, uint32) error                                      { return errSystem }
func (d *dir) chown(string, int, int) error                                    { return errSystem }
func (d *dir) setTime(string, int64) error                                     { return errSystem }
func (d *dir) room() int64                                                     { return 0 }
func (d *dir) open(string, int, uint32) (*os.File, error)                      { return nil, errSystem }
