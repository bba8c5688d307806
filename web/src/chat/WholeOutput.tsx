import { Problem } from 'loadline'
import { useEffect, useRef, useState } from 'preact/hooks'
import { report, server } from '../app/server'
import { grouped, inWords } from '../app/words'
import { Ansi } from './Ansi'

const pageBytes = 64 << 10

// WholeOutput reads an output page by page, as far as a person wants.
export function WholeOutput({ sessionID, n, bytes, close }: { sessionID: string; n: number; bytes: number; close: () => void }) {
  const [pages, setPages] = useState<string[]>([])
  const [failure, setFailure] = useState('')
  const decoder = useRef(new TextDecoder()) // a page may end inside a character
  const [read, setRead] = useState(0)
  const [reading, setReading] = useState(false)
  const next = async () => {
    setReading(true)
    try {
      const page = await readRange(sessionID, n, read, Math.min(read + pageBytes, bytes))
      const text = decoder.current.decode(page, { stream: read + page.length < bytes })
      setPages((before) => [...before, text])
      setRead(read + page.length)
    } catch (err) {
      if (err instanceof Problem && err.code !== 'unauthorized') setFailure(inWords(err.code, err.detail))
      else report(err)
    }
    setReading(false)
  }
  useEffect(() => void next(), [])
  return (
    <div class="whole">
      {pages.map((page, i) => <Ansi key={i} text={page} />)}
      {failure && <p role="alert">{failure}</p>}
      <div class="whole-row">
        <span class="hint">{grouped(read)} of {grouped(bytes)} bytes</span>
        {read < bytes && !failure && <button type="button" disabled={reading} onClick={() => void next()}>Read on</button>}
        <button type="button" class="quiet" onClick={close}>Close</button>
      </div>
    </div>
  )
}

async function readRange(sessionID: string, n: number, from: number, to: number): Promise<Uint8Array> {
  const answer = await server.fetch(`/v1/sessions/${encodeURIComponent(sessionID)}/items/${n}/output`, { headers: { Range: `bytes=${from}-${to - 1}` } })
  const all = new Uint8Array(await answer.arrayBuffer())
  return answer.status === 206 ? all : all.subarray(from, to)
}
