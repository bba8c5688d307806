import { parse } from 'yaml'

/** What this page reads of an OpenAPI 3.1 document. */
export interface Spec {
  info: { title: string; version: string; summary: string; description: string }
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, unknown>>
  components: { schemas: Record<string, Schema>; responses: Record<string, Response>; headers: Record<string, Header>; parameters: Record<string, Parameter> }
}

export interface Reference { $ref: string }

export interface Schema {
  $ref?: string
  type?: string | string[]
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: Schema | boolean
  oneOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  examples?: unknown[]
  [keyword: string]: unknown
}

export interface Media { schema: Schema; example?: unknown; examples?: Record<string, { summary?: string; value: unknown }> }
export interface Header { description: string; schema: Schema }
export interface Parameter { name: string; in: string; required?: boolean; description: string; schema: Schema }
export interface Response { description: string; headers?: Record<string, Header | Reference>; content?: Record<string, Media> }

export interface Operation {
  method: string
  path: string
  operationId: string
  tags: string[]
  summary: string
  description?: string
  parameters: (Parameter | Reference)[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, Response | Reference>
  security?: object[]
}

export function read(text: string): Spec {
  return parse(text, { maxAliasCount: -1 }) as Spec // it is our own: its aliases are no attack
}

/** The thing itself, where a reference to it may stand. */
export function resolve<T extends object>(spec: Spec, thing: T | Reference): T {
  if (!('$ref' in thing)) return thing
  let found: any = spec
  for (const step of thing.$ref.slice(2).split('/')) found = found?.[step]
  if (found === undefined) throw new Error(`openapi.yaml has nothing at ${thing.$ref}`)
  return found
}

/** The last part of a reference. */
export const nameOf = (ref: string): string => ref.slice(ref.lastIndexOf('/') + 1)

/** All operations, in the order of the document. */
export function operations(spec: Spec): Operation[] {
  return Object.entries(spec.paths).flatMap(([path, item]) => {
    const { parameters: shared = [], ...methods } = item as { parameters?: (Parameter | Reference)[] }
    return Object.entries(methods).map(([method, operation]) => {
      const own = operation as Operation
      return { ...own, method: method.toUpperCase(), path, parameters: [...shared, ...(own.parameters ?? [])] }
    })
  })
}

/** Whether an operation can be used without a key: its own security allows nothing else. */
export const isOpen = ({ security }: Operation): boolean => security?.length === 1 && Object.keys(security[0]!).length === 0
