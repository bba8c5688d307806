import DOMPurify from 'dompurify'
import { marked, Renderer } from 'marked'
import type { Block } from './split'

// What Markdown can say, and no more: no forms, styles, ids, media or frames.
const tags = ['p', 'h2', 'h3', 'h4', 'h5', 'h6', 'ul', 'ol', 'li', 'pre', 'code', 'blockquote', 'table', 'thead', 'tbody', 'tr', 'th', 'td',
  'a', 'em', 'strong', 'del', 'hr', 'br', 'sup', 'sub', 'kbd', 'b', 'i', 's', 'u']
const attributes = ['href', 'title', 'align', 'start', 'class']

// HTML in Markdown is text, but for these tags without attributes. So what could run
// is never parsed, and a person sees what the model wrote.
const otherTag = /<(?!\/?(?:br|sub|sup|kbd|b|i|s|u)\s*\/?>)/gi

const renderer = new Renderer()
renderer.html = ({ text }) => text.replace(otherTag, '&lt;')
// The page has a heading of its own above those of a message.
renderer.heading = function ({ tokens, depth }) {
  const level = Math.min(depth + 1, 6)
  return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`
}
// Nothing is fetched from elsewhere: a picture is a link that a person may follow.
renderer.image = function ({ href, text, title }) {
  return this.link({ type: 'link', raw: '', href, title, text, tokens: [{ type: 'text', raw: text, text: text || href }] })
}
renderer.checkbox = ({ checked }) => (checked ? '☑ ' : '☐ ')

// render makes what the page shows of a block. It is safe whatever the text says.
export function render(block: Block): DocumentFragment {
  if (block.token) {
    try {
      return decorate(purify(marked.parser([block.token], { renderer })))
    } catch {
      // Nested beyond any sense: shown as it stands.
    }
  }
  const p = document.createElement('p')
  p.className = 'plain'
  p.textContent = block.raw
  const plain = document.createDocumentFragment()
  plain.append(p)
  return plain
}

function purify(html: string): DocumentFragment {
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: tags,
    ALLOWED_ATTR: attributes,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#)/i,
    RETURN_DOM_FRAGMENT: true,
  })
}

function decorate(fragment: DocumentFragment): DocumentFragment {
  for (const link of fragment.querySelectorAll('a')) {
    link.rel = 'noopener noreferrer nofollow'
    link.target = '_blank'
  }
  for (const styled of fragment.querySelectorAll('[class]')) {
    if (!/^language-[\w+#.-]+$/.test(styled.className)) styled.removeAttribute('class')
  }
  for (const table of fragment.querySelectorAll('table')) wrap(table, 'table')
  for (const pre of fragment.querySelectorAll('pre')) addCopy(pre)
  return fragment
}

// wrap puts an element that may be wide into a box that scrolls, by keyboard too.
function wrap(element: Element, kind: string): HTMLElement {
  const box = document.createElement('div')
  box.className = kind + '-box'
  element.replaceWith(box)
  box.append(element)
  if (kind === 'table') {
    box.tabIndex = 0
    box.setAttribute('role', 'region')
    box.setAttribute('aria-label', 'table')
  }
  return box
}

function addCopy(pre: HTMLPreElement) {
  const language = pre.querySelector('code')?.className.replace('language-', '') ?? ''
  pre.tabIndex = 0
  const head = document.createElement('div')
  head.className = 'code-head'
  const name = document.createElement('span')
  name.textContent = language
  const copy = document.createElement('button')
  copy.type = 'button'
  copy.className = 'quiet'
  copy.dataset.copy = ''
  copy.textContent = 'Copy'
  head.append(name, copy)
  wrap(pre, 'code').prepend(head)
}
