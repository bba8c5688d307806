import { memo } from 'preact/compat'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { copyText } from '../app/clipboard'
import { render } from './render'
import { Splitter, type Block } from './split'

// Markdown shows a text that may still be growing.
export function Markdown({ text }: { text: string }) {
  const splitter = useRef<Splitter | undefined>(undefined)
  splitter.current ??= new Splitter()
  const blocks = splitter.current.update(text)
  return (
    <div class="markdown" dir="auto" onClick={copyCode}>
      {blocks.map((block, i) => <OneBlock key={i} block={block} />)}
    </div>
  )
}

const OneBlock = memo(function OneBlock({ block }: { block: Block }) {
  const box = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => box.current?.replaceChildren(render(block)), [block.raw])
  return <div ref={box} class="block" />
}, (before, after) => before.block.raw === after.block.raw)

function copyCode(e: MouseEvent) {
  const button = (e.target as Element).closest<HTMLButtonElement>('button[data-copy]')
  const code = button?.closest('.code-box')?.querySelector('pre')?.textContent
  if (button && code != null) void copyText(code, button)
}
