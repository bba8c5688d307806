package artifact

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"loadline/internal/session"
)

// What a cut result costs beside its commit.
func BenchmarkKeep(b *testing.B) {
	for _, kib := range []int{64, 1024, 8192} {
		b.Run(fmt.Sprintf("%dKiB", kib), func(b *testing.B) {
			whole := strings.Repeat("x", kib<<10)
			id := session.NewID()
			k, err := Open(b.Context(), Config{
				Dir: b.TempDir(), QuotaBytes: 1 << 30, MaxAge: time.Hour, Logger: zerolog.Nop(),
				Log: &history{sessions: map[session.ID]map[int64]session.Item{id: {}}},
			})
			if err != nil {
				b.Fatal(err)
			}
			defer k.Close()
			b.SetBytes(int64(len(whole)))
			for n := int64(1); b.Loop(); n++ {
				if kept := k.Keep(id, n, whole); kept.Error != "" {
					b.Fatalf("Keep = %+v", kept)
				}
			}
		})
	}
}
