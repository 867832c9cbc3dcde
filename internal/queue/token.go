package queue

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const tokenFile = "token"

// ReadToken returns the token that the embedded server with this data
// directory asks for; ErrNotFound when there is none yet.
func ReadToken(dataDir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dataDir, tokenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("token in %s: %w", dataDir, ErrNotFound)
	}
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		return "", fmt.Errorf("token file %s is empty (hint: remove it, the next start makes a new one)",
			filepath.Join(dataDir, tokenFile))
	}
	return token, nil
}

// ensureToken returns the token of a data directory, made once and readable
// by the owner only.
func ensureToken(dataDir string) (string, error) {
	token, err := ReadToken(dataDir)
	if !errors.Is(err, ErrNotFound) {
		return token, err
	}
	// A reader never sees half a token: it appears under its name when whole.
	f, err := os.CreateTemp(dataDir, tokenFile+".*")
	if err != nil {
		return "", fmt.Errorf("create token: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	token = rand.Text()
	_, err = f.WriteString(token + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("write token: %w", err)
	}
	if err := os.Rename(f.Name(), filepath.Join(dataDir, tokenFile)); err != nil {
		return "", fmt.Errorf("write token: %w", err)
	}
	return token, nil
}
