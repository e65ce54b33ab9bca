//go:build !linux

package kept

import "os"

// supported: where files can't be told apart by more than their names, nothing
// is kept, and cards say "cannot be undone".
const supported = false

// dir is never opened here.
type dir struct{}

// Full tells whether something failed since a disk is full.
func Full(error) bool { return false }

func openDir(string) (*dir, error)                              { return nil, errNothing }
func dirOf(*os.Root) (*dir, error)                              { return nil, errNothing }
func clone(*os.File, int64, *os.File, int64, int64) bool        { return false }
func nextPart(_ *os.File, at, end int64) (int64, int64)         { return at, end }
func punch(*os.File, int64, int64)                              {}
func attributes(*os.File) map[string][]byte                     { return nil }
func setAttributes(*os.File, map[string][]byte)                 {}
func (d *dir) close()                                           {}
func (d *dir) at(string) (*dir, error)                          { return nil, errNothing }
func (d *dir) names() ([]string, error)                         { return nil, errNothing }
func (d *dir) lstat(string) (node, error)                       { return node{}, errNothing }
func (d *dir) swap(string, string) error                        { return errNothing }
func (d *dir) mkdir(string, uint32) error                       { return errNothing }
func (d *dir) symlink(string, string) error                     { return errNothing }
func (d *dir) mkfifo(string) error                              { return errNothing }
func (d *dir) readlink(string) ([]byte, error)                  { return nil, errNothing }
func (d *dir) chmod(string, uint32) error                       { return errNothing }
func (d *dir) dress(string, node) error                         { return errNothing }
func (d *dir) room() int64                                      { return 0 }
func (d *dir) taken(string) int64                               { return 0 }
func (d *dir) open(string, int, uint32) (*os.File, node, error) { return nil, node{}, errNothing }
func (d *dir) renameNew(string, string) error                   { return errNothing }
func (d *dir) link(string, string) error                        { return errNothing }
func (d *dir) removeTree(string) error                          { return errNothing }
func (d *dir) own(string, node)                                 {}
