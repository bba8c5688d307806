import { Problem } from 'loadline'
import { useEffect, useRef, useState } from 'preact/hooks'
import { keyWanted } from './server'
import { inWords } from './words'

export interface Loaded<T> {
  value?: T
  failure: string // in plain words; "" is none
  reload: () => void
}

// useLoad reads something when what it depends on changes, and shows what was there
// before until then.
export function useLoad<T>(read: (signal: AbortSignal) => Promise<T>, depends: unknown[]): Loaded<T> {
  const [state, setState] = useState<{ value?: T; failure: string }>({ failure: '' })
  const [round, setRound] = useState(0)
  const latest = useRef(read)
  latest.current = read
  useEffect(() => {
    const stop = new AbortController()
    latest.current(stop.signal).then((value) => setState({ value, failure: '' }), (err: unknown) => {
      if (stop.signal.aborted) return
      if (err instanceof Problem && err.code === 'unauthorized') keyWanted.value = true
      setState((before) => ({ ...before, failure: err instanceof Problem ? inWords(err.code, err.detail) : 'It could not be read.' }))
    })
    return () => stop.abort()
  }, [...depends, round])
  return { ...state, reload: () => setRound((n) => n + 1) }
}

type Page<T> = { data: T[]; next_cursor?: string }

export interface Pages<T> extends Loaded<T[]> {
  more?: () => void // absent when all has been read
}

// usePages reads a list page by page.
export function usePages<T>(read: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>, depends: unknown[]): Pages<T> {
  const [further, setFurther] = useState<Page<T>>({ data: [] })
  const first = useLoad(async (signal) => {
    const page = await read(undefined, signal)
    setFurther({ data: [], next_cursor: page.next_cursor })
    return page.data
  }, depends)
  const cursor = further.next_cursor
  const more = async () => {
    const page = await read(cursor, new AbortController().signal).catch(() => undefined)
    if (page) setFurther((before) => ({ data: [...before.data, ...page.data], next_cursor: page.next_cursor }))
  }
  return { ...first, value: first.value && [...first.value, ...further.data], more: cursor ? () => void more() : undefined }
}
