import { useEffect, useState } from 'preact/hooks'
import { spanInWords } from '../app/words'

// Elapsed counts the seconds since a time.
export function Elapsed({ since }: { since: string }) {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  const ms = now - Date.parse(since)
  return <>{ms >= 1000 ? spanInWords(Math.floor(ms / 1000) * 1000) : ''}</>
}
