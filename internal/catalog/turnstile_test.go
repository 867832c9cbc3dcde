package catalog

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestTurnstileShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurnstile()
		works := 0 // one at a time touches it
		release := make(chan struct{})
		done := make(chan error)
		go func() {
			done <- turns.pass(t.Context(), func(context.Context) error {
				works++
				<-release
				return nil
			})
		}()
		synctest.Wait()
		const many = 20
		for range many {
			go func() {
				done <- turns.share(t.Context(), func(context.Context) error {
					works++
					return nil
				})
			}()
		}
		synctest.Wait()
		close(release)
		for range many + 1 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		// The work under way began before they asked: one more is needed, and enough.
		if works != 2 {
			t.Errorf("%d works, want 2", works)
		}
	})
}

func TestTurnstileDoesNotShareFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurnstile()
		failure := errors.New("no")
		works := 0
		release := make(chan struct{})
		done := make(chan error)
		go func() {
			done <- turns.pass(t.Context(), func(context.Context) error {
				<-release
				return nil
			})
		}()
		synctest.Wait()
		for range 3 {
			go func() {
				done <- turns.share(t.Context(), func(context.Context) error {
					works++
					if works == 1 { // say, its caller gave up
						return failure
					}
					return nil
				})
			}()
		}
		synctest.Wait()
		close(release)
		failed := 0
		for range 4 {
			if err := <-done; errors.Is(err, failure) {
				failed++
			} else if err != nil {
				t.Error(err)
			}
		}
		if failed != 1 || works != 2 {
			t.Errorf("%d failed in %d works, want 1 in 2", failed, works)
		}
	})
}

func TestTurnstileWaitsNoLongerThanItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurnstile()
		release := make(chan struct{})
		done := make(chan error)
		go func() {
			done <- turns.pass(t.Context(), func(context.Context) error {
				<-release
				return nil
			})
		}()
		synctest.Wait()
		cause := errors.New("drained")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { done <- turns.share(ctx, func(context.Context) error { return nil }) }()
		synctest.Wait()
		cancel(cause)
		if err := <-done; !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
